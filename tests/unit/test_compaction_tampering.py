"""A ledger and the entries that it accounts for: whatever one bit of them is turned, verification says so."""

import random
from collections.abc import Sequence

import msgspec
import pytest

from tests.support.compaction_threads import PLANTED, Thread, talk
from threadmark.compaction import Analyses, LedgerDamaged, Row, SourceEntry, recheck_rows, verify_rows
from threadmark.compaction.ledger import Ledger, hash_rows
from threadmark.compaction.model.policy import Policy
from threadmark.compaction.run.proposal import Proposal

SOME, MANY = 300, 20_000
_ROW = msgspec.json.Decoder(Row)


async def second_ledger() -> tuple[Thread, Ledger]:
    """The ledger of a second compaction that has no room: it has rows of every kind."""
    thread = Thread(
        talk(16, 5, planted=PLANTED),
        Policy(keep_last_turns=1, min_gain=0.0, summary_tokens=60, appendix_tokens=60),
    )
    for start in (200, 300):
        assert isinstance(await thread.compact(), Proposal)
        thread.entries = [*thread.entries, *talk(4, start, start=start)]
    ledger = thread.ledgers["c2"]
    for kind in ("promotion_id", "survived", "lost_at", "kept_in", "reason"):
        assert any(getattr(row, kind) for row in ledger.rows), kind
    return thread, ledger


def covered_of(thread: Thread) -> list[SourceEntry]:
    """The entries that the second compaction covers."""
    (segment,) = (each for each in thread.segments.values() if each.compaction_id == "c2")
    return [entry for entry in thread.entries if entry.seq in segment.covered]


def turned(row: Row, chance: random.Random) -> Row | None:
    """The row after one bit of its line in the export was turned; None where that is no row, or the same one."""
    line = bytearray(msgspec.json.encode(row))
    line[chance.randrange(len(line))] ^= 1 << chance.randrange(8)
    try:
        bad = _ROW.decode(bytes(line))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return None if bad == row else bad


def holds(ledger: Ledger, rows: Sequence[Row], covered: Sequence[SourceEntry], analyses: Analyses) -> bool:
    """Whether the rows verify by the root and by the entries."""
    try:
        verify_rows(rows, ledger.previous_root, ledger.root)
        recheck_rows(rows, covered, analyses)
    except LedgerDamaged:
        return False
    return True


@pytest.mark.parametrize("with_words", [True, False], ids=["with words", "with digests"])
@pytest.mark.parametrize("count", [SOME, pytest.param(MANY, marks=pytest.mark.soak)])
async def test_a_turned_bit_of_the_export_is_found(count: int, with_words: bool) -> None:
    """One bit anywhere in the lines of a ledger: it is no ledger any more, or it does not verify (G19)."""
    thread, ledger = await second_ledger()
    covered, analyses, chance = covered_of(thread), Analyses(), random.Random(20_261_130)
    rows = list(ledger.rows) if with_words else hash_rows(ledger.rows)
    assert holds(ledger, rows, covered, analyses)

    unseen = []
    for _ in range(count):
        at = chance.randrange(len(rows))
        bad = turned(rows[at], chance)
        if bad is not None and holds(ledger, [*rows[:at], bad, *rows[at + 1 :]], covered, analyses):
            unseen.append((rows[at], bad))
    assert unseen == []


async def test_rows_that_change_places_or_go_are_found() -> None:
    """Two rows that stand in each other's place, one that is gone, one that is there twice (G19)."""
    _, ledger = await second_ledger()
    rows = list(ledger.rows)
    for bad in ([rows[1], rows[0], *rows[2:]], rows[1:], [*rows, rows[-1]]):
        with pytest.raises(LedgerDamaged):
            verify_rows(bad, ledger.previous_root, ledger.root)


@pytest.mark.parametrize("count", [SOME // 4, pytest.param(MANY // 4, marks=pytest.mark.soak)])
async def test_a_turned_bit_of_an_entry_is_found(count: int) -> None:
    """One bit of what an entry says: the ledger that accounts for it does not verify by it (G19)."""
    thread, ledger = await second_ledger()
    covered, analyses, chance = covered_of(thread), Analyses(), random.Random(7)
    spoken = [number for number, entry in enumerate(covered) if entry.parts and entry.parts[0].text]
    for _ in range(count):
        at = chance.choice(spoken)
        (part, *rest) = covered[at].parts
        letters = list(part.text)
        where = chance.randrange(len(letters))
        letters[where] = chr(ord(letters[where]) ^ 1 << chance.randrange(6))
        parts = (msgspec.structs.replace(part, text="".join(letters)), *rest)
        bad = [*covered[:at], msgspec.structs.replace(covered[at], parts=parts), *covered[at + 1 :]]
        assert not holds(ledger, ledger.rows, bad, analyses), (part.text, where)
