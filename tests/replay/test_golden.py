"""Journals that were written long ago still read, and still mean what they meant."""

from pathlib import Path

import msgspec
import pytest

from tests.replay.golden import FOLDER, Golden, digest_of, picture_of, read_golden
from tests.replay.record import STORIES
from threadmark.state.entries.entry import KINDS, encode

JOURNALS = sorted(FOLDER.glob("*.jsonl"))


@pytest.fixture(params=JOURNALS, ids=lambda path: path.stem)
def golden(request: pytest.FixtureRequest) -> Golden:
    """Each golden journal in turn."""
    path: Path = request.param
    return read_golden(path)


def test_a_golden_journal_folds_to_what_it_folded_to(golden: Golden) -> None:
    """Messages, open calls, questions, counts, positions: a run that is parked goes on where it stood."""
    assert digest_of(picture_of(golden.entries, golden.leaves, golden.lineage)) == golden.digest


def test_a_golden_journal_is_stored_as_it_was(golden: Golden) -> None:
    """What is read and written again is the same document: nothing is renamed, nothing is left out."""
    for payload, recorded in zip(golden.payloads, golden.entries, strict=True):
        assert msgspec.json.decode(encode(recorded.entry)) == msgspec.json.decode(payload)


def test_the_golden_journals_have_every_kind_of_entry() -> None:
    """A kind that no journal shows could change its meaning unseen; a new one needs a story."""
    shown = {each.kind for path in JOURNALS for each in read_golden(path).entries}

    assert shown == set(KINDS)


def test_every_story_has_its_journal() -> None:
    """And every journal the story that it was written by."""
    assert {path.stem for path in JOURNALS} == set(STORIES)


def test_the_seqs_are_dense(golden: Golden) -> None:
    """The file is a whole journal."""
    assert [each.seq for each in golden.entries] == list(range(1, len(golden.entries) + 1))
