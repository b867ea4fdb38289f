"""Entries in their stored form: what was written by one version reads in the next."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.factories import human, replied, returned, started
from threadmark.state import Message, ModelReplied, ToolReturned, Usage, kind_of, spell, unspell
from threadmark.state.entries.entry import KINDS, Entry, decode, encode

#: Text as UTF-8 can hold it.
TEXTS = st.text(st.characters(codec="utf-8"))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53 - 1), 2**53 - 1), st.floats(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=10,
)


def stored(entry: Entry) -> Entry:
    """The entry after its journey through the database."""
    return decode(kind_of(entry), encode(entry))


def test_every_kind_has_a_name_and_every_name_a_kind() -> None:
    """The names are what is stored, so there are no two for one, and none is lost."""
    assert len(set(KINDS.values())) == len(KINDS)
    assert all(name == name.lower() and name.isascii() for name in KINDS)


@given(VALUES)
def test_a_result_comes_back_as_it_was(value: Any) -> None:
    """The value of a step, whatever JSON it is: NaN, NUL, big integers, empty keys (C01, C04)."""
    entry = returned("tool-1-0", spell(value))

    back = stored(entry)

    assert isinstance(back, ToolReturned)
    assert repr(unspell(back.value)) == repr(value)


@given(TEXTS, TEXTS)
def test_messages_come_back_as_they_were(text: str, name: str) -> None:
    """Code point by code point, in text and in blocks."""
    blocks = Message(id="1", type="human", content=[{"type": "text", "text": text}], name=name)

    assert stored(started(human(text), blocks)) == started(human(text), blocks)


def test_defaults_are_not_stored() -> None:
    """What is not there reads as its default, so a field can be added and an old journal still reads."""
    assert msgspec.json.decode(encode(replied())) == {
        "step_key": "model-1",
        "message": {"id": "ai-1", "type": "ai", "content": "hi"},
        "model": "scripted",
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def test_a_field_of_a_newer_version_does_not_stop_an_older_reader() -> None:
    """During a rolling deploy both versions read the same journal."""
    payload = msgspec.json.encode({**msgspec.json.decode(encode(replied())), "mood": "cheerful"})

    back = decode("model_replied", payload)

    assert isinstance(back, ModelReplied)
    assert (back.message.content, back.usage) == ("hi", Usage(10, 5))


def test_a_kind_of_a_newer_version_is_an_error_and_not_skipped() -> None:
    """A fold that leaves out what it does not understand would give another state."""
    with pytest.raises(KeyError):
        decode("of_tomorrow", b"{}")


def test_a_non_finite_float_is_never_stored_as_null() -> None:
    """`spell` comes before `encode`, which would make NaN a null without a word."""
    back = stored(returned("tool-1-0", spell([math.nan])))

    assert isinstance(back, ToolReturned)
    assert math.isnan(unspell(back.value)[0])
