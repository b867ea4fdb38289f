"""Spans that are erased, and where those that stay stand now."""

import hashlib
import random

import pytest

from threadmark.workers.tasks.erased_json import MARKS, Erased, QuotedSpan
from threadmark.workers.tasks.erased_spans import ERASED, Span, erase_spans, said_span, span_now

SAID = "plays the cello and eats figs"


def test_a_span_becomes_a_mark_and_what_stays_is_found() -> None:
    """The example of the module."""
    text, marks = erase_spans(SAID, [], [(0, 15)])

    assert (text, marks) == (f"{ERASED} and eats figs", [(0, 15)])
    assert span_now(marks, 20, 29) == (13, 22)
    assert span_now(marks, 10, 29) is None
    assert said_span(marks, 13, 22) == (20, 29)
    assert said_span(marks, 3, 22) == (0, 29)


@pytest.mark.parametrize("seed", range(50))
def test_whatever_is_erased_the_rest_is_where_it_is_said_to_be(seed: int) -> None:
    """Step by step or at once, the same text; each code point that stays is found, and found back."""
    chance = random.Random(seed)
    said = "".join(chance.choice("abcdefgh é\n") for _ in range(chance.randrange(1, 60)))
    spans: list[Span] = []
    text, marks = said, list[Span]()
    for _ in range(6):
        start = chance.randrange(len(said))
        spans.append((start, start + chance.randrange(1, 12)))
        text, marks = erase_spans(text, marks, spans[-1:])

    assert (text, marks) == erase_spans(said, [], spans)
    gone = {at for start, end in spans for at in range(start, end)}
    for at, sign in enumerate(said):
        now = span_now(marks, at, at + 1)
        assert (now is None) == (at in gone)
        if now is not None:
            assert text[slice(*now)] == sign
            assert said_span(marks, *now) == (at, at + 1)


def message(text: str, **fields: object) -> dict[str, object]:
    """What a person said."""
    return {"id": "m1", "type": "human", "content": text, **fields}


def test_a_word_of_the_erased_stays_in_what_others_said() -> None:
    """The value of a fact is nobody's own word: another message that has it is left alone."""
    erased = Erased(texts=["cello", "Tom plays the cello every day"], told_seqs=[7])
    other = {"messages": [message("Ann tunes a cello in Rome")]}
    quoting = {"messages": [message("So Tom plays the cello every day!")]}
    reply = {"message": message("Noted: cello.", type="ai")}

    assert erased("run_started", 7, other) is other
    assert erased("run_started", 3, quoting)["messages"][0]["content"] == f"So {ERASED}!"
    assert erased("model_replied", 7, reply)["message"]["content"] == f"Noted: {ERASED}."
    assert erased("model_replied", 8, reply) is reply


def test_a_source_with_a_span_takes_this_span() -> None:
    """The rest of the message stays, and the request as it was written, which repeats it all, does not."""
    digest = hashlib.sha256(b"eats figs").hexdigest()
    first = Erased(spans={"m1": [QuotedSpan(0, 15)]}, told_seqs=())
    request = {"messages": [message(SAID)], "kwargs": {"input": SAID, "x": 1}}

    once = first("request", 0, request)
    assert once == {"messages": [message(f"{ERASED} and eats figs", **{MARKS: [[0, 15]]})], "kwargs": {"x": 1}}
    assert first("request", 0, once) is once
    assert first.words_of("request", 0, request) == ["plays the cello", "plays the cello"]

    for span in (QuotedSpan(20, 29, digest), QuotedSpan(13, 22, digest)):
        # Counted in what was said, or by a client in what it was shown.
        twice = Erased(spans={"m1": [span]}, told_seqs=())("request", 0, once)
        assert twice["messages"][0]["content"] == f"{ERASED} and {ERASED}"
