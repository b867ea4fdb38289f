"""Values that a journal keeps: back exactly as they were, or refused where they are saved."""

import json
import math
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from enum import IntEnum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadmark.state import ValueRefused, check_text, plain, spell, unspell
from threadmark.state.entries.value import DEPTH_MAX

TEXTS = st.text(st.characters(codec="utf-8"))
KEYS = st.one_of(TEXTS, st.sampled_from(["$float", "$", "$$float", "$$", "NaN"]))
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(min_value=-(2**53 - 1), max_value=2**53 - 1), st.floats(allow_nan=True), TEXTS
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=20,
)


def equal(one: Any, other: Any) -> bool:
    """Equal in type and value, where NaN equals itself and 0.0 is not -0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return repr(one) == repr(other)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(equal, one.values(), other.values()))
    return bool(one == other)


def journaled(value: object) -> Any:
    """The value after a journey through JSON, as the journal stores it."""
    return unspell(msgspec.json.decode(msgspec.json.encode(spell(value))))


@given(VALUES)
def test_what_is_spelled_comes_back_equal(value: Any) -> None:
    """A value that was accepted comes back from JSON with its types, its order and its last bit (C06)."""
    assert equal(journaled(value), value)


@given(VALUES)
def test_a_spelled_value_is_strict_json(value: Any) -> None:
    """No reader of a response ever meets NaN or Infinity as a token (C04)."""

    def no_constant(token: str) -> None:
        raise AssertionError(f"the token {token} is no JSON")

    json.loads(json.dumps(spell(value)), parse_constant=no_constant)


def test_non_finite_floats_have_a_documented_spelling() -> None:
    """NaN and the infinities are kept as an object of one key, and reload as the same floats (C04)."""
    value = {"ok": 0.5, "bad": math.nan, "big": math.inf, "low": -math.inf}

    assert spell(value) == {
        "ok": 0.5,
        "bad": {"$float": "NaN"},
        "big": {"$float": "Infinity"},
        "low": {"$float": "-Infinity"},
    }
    assert equal(journaled(value), value)


@pytest.mark.parametrize("key", ["$float", "$", "$$float", "$ref"])
def test_an_object_that_looks_like_the_spelling_does_not_collide_with_it(key: str) -> None:
    """An object of one key that begins with `$` comes back as it was, whatever stands in it."""
    assert equal(journaled({key: "NaN"}), {key: "NaN"})
    assert equal(journaled([{key: {key: math.nan}}]), [{key: {key: math.nan}}])


@given(VALUES)
def test_what_readers_are_shown_is_the_value_itself(value: Any) -> None:
    """The spelling is the journal's own affair: only floats that JSON does not have stay spelled."""

    def shown(part: Any) -> Any:
        if isinstance(part, float) and not math.isfinite(part):
            return spell(part)
        if isinstance(part, list):
            return [shown(each) for each in part]
        return {key: shown(each) for key, each in part.items()} if isinstance(part, dict) else part

    assert equal(plain(spell(value)), shown(value))


class Colour(IntEnum):
    """A number that is not only a number."""

    RED = 1


class Text(str):
    """A string that is not only a string."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"items": [{(1, 2), (3, 4)}]}, "result.items[0]"),
        ({"a": {1: "a"}}, "result.a[1]"),
        ({"a": {None: 1}}, "result.a[None]"),
        ([Decimal("1.10")], "result[0]"),
        ({"pair": (1, 2)}, "result.pair"),
        ({"raw": b"\x00\xff"}, "result.raw"),
        (datetime(2027, 1, 1, tzinfo=UTC), "result"),
        ({"o": OrderedDict(a=1)}, "result.o"),
        ({"colour": Colour.RED}, "result.colour"),
        ({"text": Text("x")}, "result.text"),
        ({"c": 1j}, "result.c"),
        ({"big": [2**53]}, "result.big[0]"),
        ({"low": [-(2**53)]}, "result.low[0]"),
        ({"half": "\ud800"}, "result.half"),
        ({"half\udfff": 1}, "result key"),
    ],
)
def test_what_would_come_back_as_something_else_is_refused_with_its_path(value: object, path: str) -> None:
    """A silent change is worse than a refusal, and a refusal without the place is of no use (C06)."""
    with pytest.raises(ValueRefused) as refused:
        spell(value, "result")

    assert refused.value.path == path
    assert str(refused.value).startswith(path + " ")


def test_a_value_may_be_as_deep_as_the_bound_and_no_deeper() -> None:
    """`DEPTH_MAX` nested lists are kept, one more is refused before anything recurses without end."""

    def nested(depth: int) -> Any:
        value: Any = 0
        for _ in range(depth):
            value = [value]
        return value

    assert equal(journaled(nested(DEPTH_MAX)), nested(DEPTH_MAX))
    with pytest.raises(ValueRefused, match=f"deeper than {DEPTH_MAX}"):
        spell(nested(DEPTH_MAX + 1))


def test_a_value_that_contains_itself_is_refused() -> None:
    """A cycle has no spelling; it is refused like any other depth without end."""
    cycle: list[Any] = []
    cycle.append(cycle)

    with pytest.raises(ValueRefused, match="deeper"):
        spell(cycle)


@pytest.mark.parametrize("text", ["abc\x00def", "\u2028\u2029", "\x1b[0m", "日本語", "🙂", "e\u0301", "\ufeff"])
def test_text_keeps_its_exact_code_points(text: str) -> None:
    """NUL, line separators, and unnormalised text come back code point by code point (C01)."""
    assert journaled(text) == text
    assert check_text(text, "text") is text


def test_a_lone_surrogate_is_refused_at_its_place() -> None:
    """No UTF-8 store can keep half of a pair; the refusal says where it stands."""
    with pytest.raises(ValueRefused, match="code point 2"):
        check_text("ab\ud83d", "text")
