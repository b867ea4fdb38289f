"""The seal: what verification finds, what an erasure and a hashing leave, and how the units are counted again."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tests.support.compaction_threads import human, message
from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.input.source import Part, PartKind, Role, SourceEntry
from threadmark.compaction.ledger import (
    GENESIS,
    Account,
    Ledger,
    LedgerDamaged,
    Row,
    Shown,
    Source,
    Status,
    UnitKind,
    close,
    erase_rows,
    hash_rows,
    judge,
    recheck_rows,
    root_of,
    verify_rows,
)
from threadmark.compaction.ledger.seal import content_digest, seal_rows

ENTRIES = [
    human(1, "We must pay $900 for the stand."),
    human(2, "It is $900 or 5 EUR."),
    message(3, Role.HUMAN, "", parts=(Part(kind=PartKind.MEDIA, media_type="image/png", digest="ab", size=9),)),
]


def ledger_of(entries: Sequence[SourceEntry] = ENTRIES, **changes: Any) -> Ledger:
    """The ledger of a compaction that keeps nothing."""
    account = Account(
        compaction_id="c",
        covered=entries,
        others=[],
        passages=[],
        new_segments=(),
        shown={entry.position: Shown.FULL for entry in entries},
        **changes,
    )
    return close(account, judge(account, Analyses()), b"x" * 32, GENESIS)


def changed(rows: Sequence[Row], said: str, **changes: Any) -> list[Row]:
    """The rows, the first with this text changed."""
    at = next(number for number, row in enumerate(rows) if row.text == said)
    return [*rows[:at], msgspec.structs.replace(rows[at], **changes), *rows[at + 1 :]]


def row_of(rows: Sequence[Row], canon: str) -> Row:
    """The row of a value."""
    return next(row for row in rows if row.canon == canon)


def erased(seq: int, entries: Sequence[SourceEntry] = ENTRIES) -> list[SourceEntry]:
    """The entries after one of them was erased."""
    return [
        msgspec.structs.replace(entry, parts=(), calls=(), erased=True) if entry.seq == seq else entry
        for entry in entries
    ]


def damage(rows: Sequence[Row], ledger: Ledger) -> str | None:
    """What verification of the rows finds."""
    try:
        verify_rows(rows, ledger.previous_root, ledger.root)
    except LedgerDamaged as error:
        return error.where
    return None


def recount_damage(rows: Sequence[Row], entries: Sequence[SourceEntry], *, recounts: bool = True) -> str | None:
    """What counting the units again finds."""
    try:
        recheck_rows(rows, entries, Analyses(), recounts=recounts)
    except LedgerDamaged as error:
        return error.where
    return None


def asides(rows: Sequence[Row], secret: bytes = b"s") -> tuple[list[Row], str]:
    """The rows under a seal of their own, and its root."""
    sealed = seal_rows(map(msgspec.structs.replace, rows), secret)
    return sealed, root_of(sealed, GENESIS)


PLAIN = Row(unit=UnitKind.ATOM, cls="money", canon="USD 900", text="$900", status=Status.DROPPED)


def test_a_ledger_verifies_by_its_rows_its_root_and_the_one_before() -> None:
    """Another root, or another one before it, is another ledger."""
    ledger = ledger_of()

    assert damage(ledger.rows, ledger) is None
    assert damage(ledger.rows, msgspec.structs.replace(ledger, root="0" * 64)) == "its root"
    assert damage(ledger.rows, msgspec.structs.replace(ledger, previous_root="0" * 64)) == "its root"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"text": "$901"}, "the words of atom"),
        ({"canon": "USD 901"}, "the words of atom"),
        ({"salt": "00" * 16}, "the words of atom"),
        ({"altered_to": "$1"}, "the words beside atom"),
        ({"superseded_by": "USD 1"}, "the words beside atom"),
        ({"promotion_id": "m1"}, "the words beside atom"),
        ({"critical": False}, "its root"),
        ({"status": Status.PARAPHRASED}, "its root"),
        ({"sources": (Source(1, 0, 0, 0, 4),)}, "its root"),
        ({"salience": 1.0}, "its root"),
        ({"lost_at": "c9"}, "its root"),
    ],
)
def test_a_row_that_was_changed_is_found(change: dict[str, Any], where: str) -> None:
    """By its words, by what stands beside them, or by the root."""
    ledger = ledger_of()

    assert str(damage(changed(ledger.rows, "$900", **change), ledger)).startswith(where)


def test_a_row_of_before_knows_nothing_of_what_stands_beside_it() -> None:
    """Its root covers neither that nor its history; it verifies as it did."""
    sealed = [msgspec.structs.replace(row, aside="") for row in asides([PLAIN])[0]]
    root = root_of(sealed, GENESIS)

    later = [msgspec.structs.replace(row, promotion_id="m1", survived=("c9",)) for row in sealed]
    assert root_of(later, GENESIS) == root
    verify_rows(later, GENESIS, root)


def test_no_two_rows_have_one_salt_and_no_secret_makes_two_alike() -> None:
    """The salt is the row's own: of its place, under the secret of its ledger."""
    sealed, _ = asides([PLAIN, PLAIN])
    again, _ = asides([PLAIN], b"t")

    assert len({sealed[0].salt, sealed[1].salt, again[0].salt}) == 3
    assert all(len(row.salt) == 32 and row.digest == content_digest(row.salt, row.canon, row.text) for row in sealed)


def test_an_erasure_takes_the_words_of_what_only_the_erased_said() -> None:
    """Its rows keep place, digest and root; what another entry says too stays whole."""
    ledger = ledger_of()
    rows = erase_rows(ledger.rows, frozenset({2}))

    euro = next(row for row in rows if row.status is Status.ERASED and row.unit is UnitKind.ATOM)
    dollar = row_of(rows, "USD 900")
    before = row_of(ledger.rows, "EUR 5")
    assert (euro.text, euro.canon, euro.salt, euro.digest) == ("", before.digest, "", before.digest)
    assert (euro.status_before, euro.sources) == (before.status, before.sources)
    assert dollar == row_of(ledger.rows, "USD 900")
    assert sum(row.status is Status.ERASED for row in rows) == 2  # the message and the value
    assert damage(rows, ledger) is None
    assert damage(changed(rows, "$900", status=Status.ERASED), ledger) is not None
    assert recount_damage(rows, erased(2)) is None
    assert erase_rows(rows, frozenset({2})) == rows
    twice = erase_rows(rows, frozenset({1, 2}))
    assert [row.status_before for row in twice if row.digest == euro.digest] == [before.status]
    assert damage(twice, ledger) is None
    assert recount_damage(twice, erased(1, erased(2))) is None


def test_an_erasure_takes_what_stands_beside_the_words_and_leaves_what_has_no_source() -> None:
    """The later value and the promotion; an invention of the summary has no source that could be erased."""
    said = msgspec.structs.replace(PLAIN, sources=(Source(1, 0, 0, 0, 4),), altered_to="$1", superseded_by="USD 1")
    sealed, root = asides([said, msgspec.structs.replace(PLAIN, promotion_id="m1", sources=said.sources), PLAIN])

    rows = erase_rows(sealed, frozenset({1}))

    assert [(row.altered_to, row.superseded_by, row.promotion_id) for row in rows[:2]] == [(None, None, None)] * 2
    assert rows[2] == sealed[2]
    verify_rows(rows, GENESIS, root)


@pytest.mark.parametrize("change", [{"text": "x"}, {"canon": "x"}, {"altered_to": "x"}, {"superseded_by": "x"}])
@pytest.mark.parametrize("make", [lambda rows: erase_rows(rows, frozenset({1, 2, 3})), hash_rows])
def test_a_row_that_gave_its_words_up_has_none(make: Any, change: dict[str, Any]) -> None:
    """Whatever puts some there again is found."""
    ledger = ledger_of()
    rows = make(ledger.rows)
    assert damage(rows, ledger) is None

    bad = [msgspec.structs.replace(rows[0], **change), *rows[1:]]
    assert "gave its words up and has some" in str(damage(bad, ledger))


def test_a_row_with_digests_keeps_its_name_its_salt_and_its_promotion() -> None:
    """A promotion that is not the sealed one is found; what was erased before stays as it is."""
    sealed, root = asides([msgspec.structs.replace(PLAIN, promotion_id="m1", altered_to="$1"), PLAIN])
    hashed = hash_rows(sealed)

    assert [(row.row_id, row.salt) for row in hashed] == [(row.row_id, row.salt) for row in sealed]
    assert [(row.text, row.canon, row.altered_to) for row in hashed] == [("", row.digest, None) for row in sealed]
    assert hash_rows(hashed) == hashed
    verify_rows(hashed, GENESIS, root)
    for number, promotion in ((0, "m2"), (0, None), (1, "m1")):
        bad = list(hashed)
        bad[number] = msgspec.structs.replace(bad[number], promotion_id=promotion)
        with pytest.raises(LedgerDamaged, match="the promotion of atom"):
            verify_rows(bad, GENESIS, root)
    ledger = ledger_of()
    gone = erase_rows(ledger.rows, frozenset({1, 2, 3}))
    assert hash_rows(gone) == gone


def test_units_that_are_counted_again_are_the_rows() -> None:
    """Each with its places, in words and as digests; a missing row, a row too many, and a moved place are found."""
    ledger = ledger_of()
    rows = list(ledger.rows)
    hashed = hash_rows(rows)
    other = msgspec.structs.replace(PLAIN, canon="USD 1", text="$1", sources=(Source(1, 0, 0, 12, 16),))

    assert recount_damage(rows, ENTRIES) is None
    assert recount_damage(hashed, ENTRIES) is None
    assert recount_damage([*rows, msgspec.structs.replace(other, status=Status.INTRODUCED)], ENTRIES) is None
    assert str(recount_damage([*rows, other], ENTRIES)).endswith("stands in no entry")
    assert str(recount_damage([row for row in rows if row.canon != "EUR 5"], ENTRIES)) == "no row for atom money"
    moved = changed(rows, "$900", sources=(Source(1, 0, 0, 0, 4), *row_of(rows, "USD 900").sources[1:]))
    assert str(recount_damage(moved, ENTRIES)).startswith("the places of atom")
    resalted = [msgspec.structs.replace(row, salt="00" * 16) for row in hashed]
    assert str(recount_damage(resalted, ENTRIES)).startswith("the words of message")
    assert str(recount_damage(changed(rows, "image/png 9 bytes ab", digest="0"), ENTRIES)).startswith(
        "the words of part"
    )


def test_of_erased_entries_only_the_places_are_known() -> None:
    """A unit that only they had needs no row; one that others have too is compared by those."""
    ledger = ledger_of()
    left = erased(2)

    assert recount_damage(ledger.rows, left) is None
    assert recount_damage(hash_rows(ledger.rows), left) is None
    without = [row for row in ledger.rows if row.canon != "EUR 5"]
    assert recount_damage(without, left) is None
    dollar = row_of(ledger.rows, "USD 900")
    short = [row for row in ledger.rows if row.canon != "USD 900"]
    assert str(recount_damage(short, left)) == "no row for atom money"
    assert recount_damage(changed(ledger.rows, "$900", sources=dollar.sources[:1]), left) is None


def test_a_ledger_of_another_extractor_is_looked_up_at_its_places() -> None:
    """Each place is inside of its entry, one of them has the words; others may be missing; messages are counted."""
    ledger = ledger_of()
    rows = list(ledger.rows)
    dollar = row_of(rows, "USD 900")

    def found(bad: Sequence[Row], entries: Sequence[SourceEntry] = ENTRIES) -> str:
        return str(recount_damage(bad, entries, recounts=False))

    assert found(rows) == "None"
    assert found([row for row in rows if row.canon != "EUR 5"]) == "None"
    assert found(hash_rows(rows)) == "None"
    assert found([row for row in rows if row.unit is not UnitKind.MESSAGE]) == "no row for message human"
    assert found(changed(rows, "$900", text="$901")).startswith("the words of atom")
    assert found(changed(rows, "$900", sources=(Source(9, 0, 0, 0, 4),))).endswith("stands in no entry")
    for start, end in ((12, 12), (16, 12), (-19, 16), (28, 99)):
        bad = changed(rows, "$900", sources=(Source(1, 0, 0, start, end), dollar.sources[1]))
        assert found(bad).startswith("the places of atom"), (start, end)
    assert found(changed(rows, "$900", sources=(Source(1, 0, 0, 0, 31), dollar.sources[1]))) == "None"
    assert found(changed(rows, "$900", status=Status.INTRODUCED, sources=(Source(9, 0, 0, 0, 4),))) == "None"
    assert found(rows, erased(1)) == "None"
    assert found(rows, erased(1, erased(2))) == "None"
