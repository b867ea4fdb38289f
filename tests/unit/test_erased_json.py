"""What stays of an entry when words are erased: it still reads, whatever the words are."""

import json
from pathlib import Path

import msgspec
import pytest

from tests.replay.golden import FOLDER, read_golden
from threadmark.state import fold, visible
from threadmark.state.entries.entry import decode
from threadmark.workers.tasks.erased_json import ERASED, Erased

#: Words that are also words of the journal itself.
OF_THE_CODE = [
    "human",
    "ai",
    "success",
    "ok",
    "text",
    "input",
    "chat",
    "type",
    "pure",
    "error",
    "1",
    "a",
    "unavailable",
]
#: Words of people and models in those journals.
SAID = {"hello", "First.", "Done.", "The dog is called Rex.", "What is the dog called?", "tidy up", "As you like."}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.jsonl")), ids=lambda path: path.stem)
def test_a_journal_without_any_words_still_folds(path: Path) -> None:
    """Every entry decodes, and the thread stands where it stood: S38."""
    golden = read_golden(path)
    erased = Erased(texts=OF_THE_CODE, whole=True, memory_ids=["25e51ff3-4b3c-49d8-8f3d-9883d655af7d"])
    left = []
    for payload, each in zip(golden.payloads, golden.entries, strict=True):
        document = erased(each.kind, each.seq, json.loads(payload))
        rest = decode(each.kind, json.dumps(document).encode())
        left.append(msgspec.structs.replace(each, entry=rest))

    before, after = (fold(visible(entries, golden.lineage)) for entries in (golden.entries, left))
    assert [each.id for each in after.messages] == [each.id for each in before.messages]
    assert (after.next, after.calls.keys()) == (before.next, before.calls.keys())
    assert {str(each.content) for each in after.messages} & SAID == set()


@pytest.mark.parametrize("text", ['say "hi" <b>', "line one\nline two", "Grüße an Łukasz & Co", "a\\b\\c\\d"])
def test_words_are_found_inside_json_that_is_a_text(text: str) -> None:
    """A tool's message and a block spell them in JSON of their own."""
    erased = Erased(texts=[text])
    for spelled in (text, json.dumps({"x": text}), json.dumps({"x": text}, ensure_ascii=False)):
        left = erased("recalled", 1, {"question": {"text": spelled}, "block": spelled, "answers": []})

        assert left["question"]["text"] == spelled.replace(text, ERASED) or ERASED in left["question"]["text"]
        assert text not in json.dumps(left)
        assert json.dumps(text)[1:-1] not in left["block"]


def test_a_short_word_goes_where_it_stands_alone() -> None:
    """Else erasing `ab` would leave nothing of the alphabet."""
    left = Erased(texts=["cat"])("tool_returned", 1, {"value": "cat concatenates a cat."})

    assert left == {"value": f"{ERASED} concatenates a {ERASED}."}


def test_an_erased_memory_keeps_its_place_among_the_answers() -> None:
    """That there was one, by which id, with which score: but none of its words, nor a hash that tells them."""
    answer = {
        "memory_id": "m1",
        "text": "secret words",
        "value": "x",
        "subject": "ann",
        "attribute": "age",
        "score": 1.0,
        "provenance": [{"thread_ref": "t", "seq": 1, "actor": "ann", "content_hash": "abc"}],
    }
    other = {"memory_id": "m2", "text": "other words", "score": 0.5}
    block = "<recalled_memory>\n{m1}\n{m2}\n</recalled_memory>"
    left = Erased(memory_ids=["m1"])("recalled", 1, {"answers": [answer, other], "block": block})

    assert left["answers"][0] == {
        **answer,
        "text": ERASED,
        "value": None,
        "subject": None,
        "attribute": None,
        "provenance": [{"thread_ref": "t", "seq": 1, "actor": None, "content_hash": None}],
    }
    assert left["answers"][1] == other
    assert left["block"] == "<recalled_memory>\n{m2}\n</recalled_memory>"


def test_what_has_nothing_to_lose_is_left_alone() -> None:
    """The same object: nothing is written for it."""
    document = {"value": "words"}

    assert Erased(texts=["other words"])("tool_returned", 1, document) is document
