"""After an erasure: the ledger verifies from the log alone, and no summary, pin or row has the erased words."""

import msgspec
import pytest

from tests.support.bad_summarisers import Recorder
from tests.support.compaction_threads import PLANTED, Thread, human, talk
from threadmark.compaction import (
    Analyses,
    LedgerDamaged,
    Policy,
    Proposal,
    Segment,
    Source,
    SourceEntry,
    Status,
    UnitKind,
    erase_rows,
    recheck_rows,
    render,
    restore_drops,
    verify_rows,
    without_erased_pins,
    written_again,
)

SECRET = "My card is CANARY-55120 and you must call kilo@secret.example."


async def thread_with_a_secret() -> tuple[Thread, Segment, list[SourceEntry]]:
    """A compacted thread, its segment, and its entries after entry 60 was erased."""
    thread = Thread([*talk(8, 1, planted=PLANTED[:4]), human(60, SECRET), *talk(8, 2, start=70)])
    proposal = await thread.compact(Recorder())
    assert isinstance(proposal, Proposal)
    assert proposal.segment is not None
    left = [
        msgspec.structs.replace(entry, parts=(), calls=(), erased=True) if entry.seq == 60 else entry
        for entry in thread.entries
    ]
    return thread, proposal.segment, left


async def test_the_log_alone_verifies_a_ledger() -> None:
    """Units counted again from the entries are the rows, each in its places; one changed row or entry is found."""
    thread, segment, _ = await thread_with_a_secret()
    covered = [entry for entry in thread.entries if entry.seq in segment.covered]
    rows = thread.ledgers["c1"].rows
    recheck_rows(rows, covered, Analyses())

    moved = [
        msgspec.structs.replace(rows[-5], sources=(msgspec.structs.replace(rows[-5].sources[0], start=0, end=3),)),
        *rows,
    ]
    forged = [each for each in moved if each is not rows[-5]]
    for bad_rows, bad_entries in ((forged, covered), (rows[:-5], covered), (rows, covered[:-1])):
        with pytest.raises(LedgerDamaged):
            recheck_rows(bad_rows, bad_entries, Analyses())


async def test_a_ledger_of_another_extractor_verifies_as_far_as_it_can() -> None:
    """Units that this extractor would not find, or finds elsewhere, are no damage; a place without the words is."""
    thread, segment, left = await thread_with_a_secret()
    covered = [entry for entry in thread.entries if entry.seq in segment.covered]
    rows = thread.ledgers["c1"].rows
    value = next(row for row in rows if row.unit is UnitKind.ATOM and row.sources)
    others = [row for row in rows if row is not value]
    recheck_rows(others, covered, Analyses(), recounts=False)
    recheck_rows(rows, [entry for entry in left if entry.seq in segment.covered], Analyses(), recounts=False)

    message = next(row for row in rows if row.unit is UnitKind.MESSAGE)
    moved = msgspec.structs.replace(value, sources=(msgspec.structs.replace(value.sources[0], start=0, end=1),))
    outside = msgspec.structs.replace(value, sources=(msgspec.structs.replace(value.sources[0], end=10_000),))
    for bad in ([*others, moved], [*others, outside], [row for row in rows if row is not message]):
        with pytest.raises(LedgerDamaged):
            recheck_rows(bad, covered, Analyses(), recounts=False)
    with pytest.raises(LedgerDamaged):
        recheck_rows(others, covered, Analyses())


async def test_an_erased_ledger_verifies_from_what_is_left() -> None:
    """The chain by its digests, the places by the entries that still have words."""
    thread, segment, left = await thread_with_a_secret()
    ledger = thread.ledgers["c1"]
    rows = erase_rows(ledger.rows, frozenset({60}))
    verify_rows(rows, ledger.previous_root, ledger.root)
    recheck_rows(rows, [entry for entry in left if entry.seq in segment.covered], Analyses())


async def test_a_summary_is_written_again_without_the_erased() -> None:
    """Its words are those of the entries that are left; what binds there stays (S38)."""
    thread, segment, left = await thread_with_a_secret()
    assert "CANARY-55120" in segment.text
    rows = erase_rows(thread.ledgers["c1"].rows, frozenset({60}))
    covered = [entry for entry in left if entry.seq in segment.covered]
    again = written_again(segment, covered, rows, Analyses(), Policy())

    assert "CANARY" not in again.text
    assert "kilo" not in again.text
    assert again.covered == segment.covered
    assert [sentence for sentence in PLANTED[:4] if sentence not in again.text] == []
    thread.entries, thread.segments[segment.segment_id] = left, again
    assert "CANARY" not in str(render(thread.view, left, thread.segments).parts)


async def test_pins_on_erased_entries_go() -> None:
    """A pin quotes its entry; without the entry it quotes nothing and leaves the view."""
    thread, _, left = await thread_with_a_secret()
    pinned = restore_drops(thread.view, "p", [Source(60, 0, 0, 0, 10), Source(1, 0, 0, 0, 5)], thread.entries)
    after = without_erased_pins(pinned, frozenset({60}), "q")
    assert len(after.items) == len(pinned.items) - 1
    assert without_erased_pins(after, frozenset({60}), "r") is after
    assert "CANARY" not in str(render(pinned, left, thread.segments).parts[-1])


async def test_a_changed_row_breaks_the_chain() -> None:
    """One status, one word, one place, one row less: the root no longer fits (G19)."""
    thread = Thread(talk(10, 1, planted=PLANTED[:4]))
    proposal = await thread.compact()
    assert isinstance(proposal, Proposal)
    ledger = proposal.ledger
    row = next(row for row in ledger.rows if row.status is Status.DROPPED)
    forged = [
        msgspec.structs.replace(row, text=row.text + "."),
        msgspec.structs.replace(row, status=Status.KEPT_VERBATIM),
        msgspec.structs.replace(row, sources=row.sources[:-1]),
        msgspec.structs.replace(row, critical=not row.critical),
    ]
    for each in forged:
        rows = [each if old is row else old for old in ledger.rows]
        with pytest.raises(LedgerDamaged):
            verify_rows(rows, ledger.previous_root, ledger.root)
    with pytest.raises(LedgerDamaged):
        verify_rows(ledger.rows[1:], ledger.previous_root, ledger.root)
    with pytest.raises(LedgerDamaged):
        verify_rows(ledger.rows, "other", ledger.root)


async def test_an_erasure_leaves_a_chain_that_verifies() -> None:
    """What only the erased entry said loses its words and keeps its row; root and number of rows stay (S38, S39)."""
    thread = Thread(
        [*talk(5, 1), human(60, "my secret is CANARY-77123 and kilo@secret.example"), *talk(5, 2, start=70)]
    )
    proposal = await thread.compact()
    assert isinstance(proposal, Proposal)
    rows = erase_rows(proposal.ledger.rows, frozenset({60}))

    assert len(rows) == len(proposal.ledger.rows)
    verify_rows(rows, proposal.ledger.previous_root, proposal.ledger.root)
    assert b"CANARY" in msgspec.json.encode(proposal.ledger.rows)
    stored = msgspec.json.encode(rows)
    assert b"CANARY" not in stored
    assert b"kilo@" not in stored
    assert {row.status for row in rows if any(source.seq == 60 for source in row.sources)} == {Status.ERASED}
