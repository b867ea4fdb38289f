"""What a model is shown of memory: data in a block that nothing in it can end."""

import json
from datetime import timedelta

import pytest

from tests.support.memory_house import NOW
from tests.support.memory_injections import INJECTIONS
from threadmark.memory import Answer, Assertion, Trust, block
from threadmark.memory.recall.block import BLOCK_BEGIN, BLOCK_END


def answer(text: str, trust: Trust = Trust.WEB) -> Answer:
    """An answer with this text."""
    held = Assertion(
        assertion_id="id-1", tenant_id="acme", namespace=("a",), text=text, kind="fact", subject=None, attribute=None,
        value=None, cardinality=None, valid_from=NOW, valid_to=NOW + timedelta(days=1), known_from=NOW, known_to=None,
        observed_at=NOW, expires_at=None, confidence=1.0, trust=trust, asserted_by="fetch", extractor=None, hold="",
        closing=None, reason=None,
    )  # fmt: skip
    return Answer(assertion=held, score=1.0, because={})


@pytest.mark.parametrize("text", INJECTIONS, ids=range(len(INJECTIONS)))
def test_nothing_in_a_block_ends_it(text: str) -> None:
    """S28: one line a note, whose text comes back to the letter; the marks of the block occur once each."""
    shown = block([answer(text), answer("plain", Trust.USER)])

    first, *notes, last = shown.splitlines()
    assert (first, last, len(notes)) == (BLOCK_BEGIN, BLOCK_END, 2)
    assert shown.count("<") == shown.count(">") == 2
    note = json.loads(notes[0])
    assert (note["text"], note["trust"], note["id"]) == (text, "untrusted", "id-1")
    assert json.loads(notes[1])["trust"] == "user"


def test_nothing_recalled_shows_nothing() -> None:
    """An empty block would only invite guesses."""
    assert block([]) == ""
