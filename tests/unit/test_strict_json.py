"""What the API calls JSON, and how it names the place of everything else."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import strict_json
from app.strict_json import (
    DEPTH_MAX,
    KEY_COUNT_MAX,
    ByteOrderMark,
    DuplicateKey,
    LoneSurrogate,
    Malformed,
    NonFiniteNumber,
    NotUtf8,
    NumberOutOfRange,
    StrictJsonRefused,
    TooDeep,
    TooManyKeys,
    parse,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
)


@given(VALUES, st.booleans())
def test_a_json_value_comes_back_as_it_was_sent(value: Any, ascii_only: bool) -> None:
    """Every JSON value survives, exactly, whether its text is escaped or plain UTF-8."""
    assert repr(value) == repr(parse(json.dumps(value, ensure_ascii=ascii_only).encode()))


@given(st.binary())
def test_no_bytes_at_all_bring_another_error(raw: bytes) -> None:
    """Arbitrary bytes are a value or a StrictJsonRefused, never another exception."""
    try:
        parse(raw)
    except StrictJsonRefused as refusal:
        assert refusal.path.startswith("$")


@given(st.text('[]{}",:\\ntrue012.eE-u d83', max_size=300))
def test_no_json_like_text_brings_another_error(text: str) -> None:
    """Text made of JSON's own characters is a value or a StrictJsonRefused, and agrees with the standard parser."""
    try:
        value = parse(text.encode())
    except StrictJsonRefused:
        return
    assert value == json.loads(text)


@pytest.mark.parametrize(
    ("raw", "refusal", "path"),
    [
        (b'{"a": \xff}', NotUtf8, "$"),
        (b'"\xed\xa0\x80"', NotUtf8, "$"),
        (b"\xef\xbb\xbf{}", ByteOrderMark, "$"),
        (b"\xff\xfe{\x00}\x00", ByteOrderMark, "$"),
        (b"", Malformed, "$"),
        (b"{", Malformed, "$"),
        (b"[1,]", Malformed, "$"),
        (b"{} {}", Malformed, "$"),
        (b"'a'", Malformed, "$"),
        (b'"a\nb"', Malformed, "$"),
        (b"nan", Malformed, "$"),
        (b"01", Malformed, "$"),
        (b'{"a": 1, "a": 1}', DuplicateKey, "$.a"),
        (b'{"x": [{"b": 1, "c": 2, "b": 3}]}', DuplicateKey, "$.x[0].b"),
        (b'{"a": 1, "\\u0061": 2}', DuplicateKey, "$.a"),
        (b"NaN", NonFiniteNumber, "$"),
        (b'{"a": [1, Infinity]}', NonFiniteNumber, "$.a[1]"),
        (b'{"a b": -Infinity}', NonFiniteNumber, '$["a b"]'),
        (b'{"a": "\\ud800"}', LoneSurrogate, "$.a"),
        (b'["ok", "\\udc00\\ud800"]', LoneSurrogate, "$[1]"),
        (b'{"k": {"\\uDFFF": 1}}', LoneSurrogate, "$.k"),
        (b'{"n": 18446744073709551616}', NumberOutOfRange, "$.n"),
        (b'{"n": -9223372036854775809}', NumberOutOfRange, "$.n"),
        (b'{"n": 1e999}', NumberOutOfRange, "$.n"),
        (b"[" + b"9" * 100_000 + b"]", NumberOutOfRange, "$[0]"),
    ],
)
def test_what_is_refused_is_named_with_its_place(raw: bytes, refusal: type[StrictJsonRefused], path: str) -> None:
    """Each broken rule has its own type, and the path of the place where it was broken."""
    with pytest.raises(refusal) as refused:
        parse(raw)

    assert (refusal, path) == (type(refused.value), refused.value.path)
    assert str(refused.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"18446744073709551615", 2**64 - 1),
        (b"-9223372036854775808", -(2**63)),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"a\\u0000b"', "a\x00b"),
        (b' \r\n\t{"a": 1.5e3}\n', {"a": 1500.0}),
        (b"-0.0", -0.0),
        (b"null", None),
    ],
)
def test_the_edges_of_what_is_taken(raw: bytes, value: Any) -> None:
    """The largest and oddest values that still round-trip are taken."""
    assert repr(value) == repr(parse(raw))


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nesting_is_taken_up_to_its_bound_and_no_further(opening: str) -> None:
    """64 levels are taken; at the 65th the path of the opening bracket is named."""
    closing = {"[": "]"}.get(opening, "}")
    step = {"[": "[0]"}.get(opening, ".a")

    parse((opening * DEPTH_MAX + "1" + closing * DEPTH_MAX).encode())
    with pytest.raises(TooDeep) as refused:
        parse((opening * (DEPTH_MAX + 1) + "1" + closing * (DEPTH_MAX + 1)).encode())

    assert ("$" + step * DEPTH_MAX)[:200] == refused.value.path.removesuffix("…")


def test_brackets_in_strings_are_not_nesting() -> None:
    """Depth is measured on structure: a text of brackets, quotes and backslashes is a text."""
    texts = ["[" * 500, '{"[' * 500, "\\[" * 500, '\\"[' * 500]

    assert texts == parse(json.dumps(texts).encode())


@pytest.mark.parametrize("deep", [b"[" * 1_000_000, b'{"a":' * 200_000, b"[" * 100 + b"]" * 300, b'["",' * 5_000])
def test_bottomless_nesting_is_refused_without_recursion(deep: bytes) -> None:
    """A body of opening brackets alone meets the bound, not the interpreter's stack."""
    with pytest.raises(TooDeep):
        parse(deep)


@pytest.mark.parametrize("before", [b"[,", b"}", b"[NaN", b'{"a":1,"a":'])
def test_a_broken_text_before_the_depth_is_still_a_refusal(before: bytes) -> None:
    """Whatever stands before the bottomless part, the answer is one typed refusal."""
    with pytest.raises((TooDeep, Malformed)):
        parse(before + b"[" * 1_000)


def test_keys_are_counted_over_the_whole_document() -> None:
    """10,000 keys in all objects together are taken, one more is refused."""
    taken = [{str(key): 0} for key in range(KEY_COUNT_MAX)]

    assert taken == parse(json.dumps(taken).encode())
    with pytest.raises(TooManyKeys):
        parse(json.dumps([*taken, {"one more": 0}]).encode())


def test_a_long_path_is_cut() -> None:
    """A key may be as long as a body; the message that names it may not."""
    with pytest.raises(NonFiniteNumber) as refused:
        parse(json.dumps({"k" * 100_000: math.nan}).encode())

    assert len(str(refused.value)) < strict_json.PATH_CHARS_MAX + 100


@pytest.mark.parametrize("unit", [b'"\\"', b"\\", b'"[', b"[[]],", b'{"":', b"[\"'"])
def test_a_hostile_megabyte_is_read_once(unit: bytes) -> None:
    """Reading is linear in the length: a reader that backs up at every quote would not live to see the end of these."""
    with pytest.raises(StrictJsonRefused):
        parse(unit * (2**20 // len(unit)))
