"""The account over all units: what it carries on, what it misses, and that it balances."""

import msgspec
import pytest

from tests.support.compaction_threads import ai, human, message
from tests.support.ledgers import FULL, LEFT_OUT, MASKED, accounted, row_of
from threadmark.compaction.input.analysis import Analyses, analyse_text
from threadmark.compaction.input.source import Role
from threadmark.compaction.ledger import (
    GENESIS,
    Account,
    AccountUnbalanced,
    History,
    Passage,
    Row,
    Shown,
    Status,
    UnitKind,
    close,
    dropped_in,
    judge,
    judge_critical,
    totals_of,
)
from threadmark.compaction.ledger.collect import collect_units
from threadmark.compaction.ledger.outcomes import UnitOutcome
from threadmark.compaction.ledger.rows import row_id_of


def test_what_went_to_memory_is_promoted() -> None:
    """With the id that it has there, and only if it left the view."""
    entries = [human(1, "It is $900 or 5 EUR.")]
    keys = {text: row_of(accounted(entries), text).key for text in ("$900", "5 EUR")}
    ledger = accounted(entries, "$900", promoted={keys["$900"]: "m1", keys["5 EUR"]: "m2"})

    gone, kept = row_of(ledger, "5 EUR"), row_of(ledger, "$900")
    assert (gone.status, gone.reason, gone.promotion_id) == (Status.PROMOTED, None, "m2")
    assert (kept.status, kept.promotion_id) == (Status.KEPT_VERBATIM, None)


def test_a_unit_goes_on_with_its_history() -> None:
    """What was kept survived this compaction; what was lost was lost by the first that lost it, until it comes back."""
    entries = [human(1, "It is $900 or 5 EUR or 15%.")]
    keys = {text: row_of(accounted(entries), text).key for text in ("$900", "5 EUR", "15%")}
    history = {
        row_id_of(keys["$900"]): History(("c1",)),
        row_id_of(keys["5 EUR"]): History((), "c1"),
    }
    ledger = accounted(entries, "$900", history=history)

    fates = {text: (row_of(ledger, text).survived, row_of(ledger, text).lost_at) for text in keys}
    assert fates == {"$900": (("c1", "c2"), None), "5 EUR": ((), "c1"), "15%": ((), "c2")}
    fresh = row_of(accounted(entries, "15%"), "15%")
    assert (fresh.survived, fresh.lost_at) == (("c2",), None)


def test_what_is_critical_and_not_carried_by_what_lasts_is_lost() -> None:
    """A place in the tail is none, and other words are not enough; what a later value replaced is not missed."""
    entries = [
        human(1, "The fee for the stand is $900."),
        human(2, "The fee for the stand is $950."),
        human(3, "It was 15% or 2026-12-04, ask anna@example.org."),
        human(4, "We must ship the blue crates to Oslo."),
        ai(5, "It is $77."),
    ]
    summary = "The fee for the stand is $950. It is 15%. Ship blue crates to Oslo, we must."
    passages = [
        Passage(text=summary, found=analyse_text(summary), persistent=True, segment_id="s"),
        Passage(text="2026-12-04", found=analyse_text("2026-12-04"), persistent=False, seq=9),
    ]
    account = Account(
        compaction_id="c",
        covered=entries,
        others=[],
        passages=passages,
        new_segments={"s"},
        shown={entry.position: FULL for entry in entries},
    )
    analyses = Analyses()
    judged, units = judge_critical(account, analyses)

    assert [unit.text for unit in judged.lost(account.rules)] == [
        "2026-12-04",
        "anna@example.org",
        "We must ship the blue crates to Oslo.",
    ]
    assert units == collect_units(entries, analyses)
    assert {key for key in judged.units if key.cls == "human"} == set()
    whole = judge(account, analyses, units)
    assert whole.units is units
    assert whole.lost(account.rules) == judged.lost(account.rules)


def test_an_account_that_does_not_balance_is_not_closed() -> None:
    """A unit without a row, or a row without a unit, by class."""
    entries = [human(1, "It is $900.")]
    account = Account(
        compaction_id="c", covered=entries, others=[], passages=[], new_segments=(), shown={entries[0].position: FULL}
    )
    judged = judge(account, Analyses())
    extra = Row(unit=UnitKind.ATOM, cls="money", canon="EUR 1", text="1 EUR", status=Status.DROPPED)

    close(account, judged, b"x", GENESIS)
    with pytest.raises(AccountUnbalanced, match=r"1 units of atom money in the range, 2 in the ledger"):
        close(account, judged._replace(introduced=[extra]), b"x", GENESIS)
    with pytest.raises(AccountUnbalanced, match="0 units of atom date in the range, 1 in the ledger"):
        close(account, judged._replace(introduced=[msgspec.structs.replace(extra, cls="date")]), b"x", GENESIS)


@pytest.mark.parametrize(
    ("tokens", "shown", "ratio"),
    [
        ((30, 10), (FULL, MASKED), 0.75),
        ((30, 10), (FULL, FULL), 1.0),
        ((30, 10), (LEFT_OUT, MASKED), 0.0),
        ((0, 0), (FULL, LEFT_OUT), 0.5),
    ],
)
def test_the_share_that_the_summariser_saw(tokens: tuple[int, int], shown: tuple[Shown, Shown], ratio: float) -> None:
    """By tokens, by messages where nobody counted; erased messages count for nothing."""
    entries = [human(seq, "words", tokens=count) for seq, count in enumerate(tokens, start=1)]
    forms = {entry.position: form for entry, form in zip(entries, shown, strict=True)}
    erased = message(9, Role.HUMAN, "", parts=(), erased=True, tokens=500)

    assert accounted([*entries, erased], shown=forms).shown_ratio == ratio
    assert accounted([erased], shown={}).shown_ratio == 1.0


def test_sums_of_an_account() -> None:
    """By unit and status, with a total without inventions; what was dropped, and what of it was critical."""
    row = Row(unit=UnitKind.ATOM, cls="money", canon="a", text="a", status=Status.DROPPED, critical=True)
    other = msgspec.structs.replace(row, cls="date", critical=False)
    kept = msgspec.structs.replace(row, status=Status.KEPT_VERBATIM)
    new = msgspec.structs.replace(row, status=Status.INTRODUCED)
    clause = msgspec.structs.replace(row, unit=UnitKind.CLAUSE, cls="decision")
    rows = [row, row, other, kept, new, clause]

    assert totals_of(rows) == {
        "atom": {"total": 4, "dropped": 3, "kept_verbatim": 1, "introduced": 1},
        "clause": {"total": 1, "dropped": 1},
    }
    assert dropped_in(rows) == (4, 3)
    assert UnitOutcome(Status.DROPPED) == UnitOutcome(Status.DROPPED, None, None, False, None, False, None)
