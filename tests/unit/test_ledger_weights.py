"""What a unit weighs, which ones must not be lost, and through which compactions one stayed."""

import pytest

from threadmark.compaction.atoms import AtomClass
from threadmark.compaction.clauses import ClauseClass
from threadmark.compaction.input.source import Role, Trust
from threadmark.compaction.ledger import History, Row, RowKey, Source, Status, UnitKind, histories
from threadmark.compaction.ledger.collect import Unit
from threadmark.compaction.ledger.survival import survive
from threadmark.compaction.ledger.weights import atom_weight, clause_weight, is_critical, salience


@pytest.mark.parametrize("status", Status)
def test_what_stayed_in_the_view_survived(status: Status) -> None:
    """In its words, by value, merged or in other words; all else lost it."""
    stays = status in (Status.KEPT_VERBATIM, Status.KEPT_NORMALISED, Status.MERGED, Status.PARAPHRASED)

    assert survive(None, "c1", status) == (History(("c1",)) if stays else History((), "c1"))
    back = survive(History(("c0",), "c1"), "c2", status)
    assert back == (History(("c0", "c2")) if stays else History(("c0",), "c1"))
    lost = survive(History(("c0",)), "c2", status)
    assert lost == (History(("c0", "c2")) if stays else History(("c0",), "c2"))


def test_histories_are_those_of_units_that_have_a_source() -> None:
    """The last word of several ledgers counts, and what a summary made up has no history."""
    base = {"unit": UnitKind.ATOM, "cls": "money", "canon": "USD 900", "text": "$900"}
    rows = [
        Row(**base, status=Status.KEPT_VERBATIM, survived=("c1",)),  # type: ignore[arg-type]
        Row(**base, status=Status.DROPPED, lost_at="c2"),  # type: ignore[arg-type]
        Row(**{**base, "canon": "USD 1"}, status=Status.INTRODUCED),  # type: ignore[arg-type]
    ]

    assert histories(rows) == {rows[1].row_id: History((), "c2")}


@pytest.mark.parametrize(
    ("unit", "weight"),
    [
        ((UnitKind.ATOM, "money", Role.HUMAN, 1, False), 12.0),
        ((UnitKind.ATOM, "money", Role.AI, 1, False), 4.0),
        ((UnitKind.ATOM, "money", Role.AI, 1, True), 8.0),
        ((UnitKind.ATOM, "money", Role.AI, 2, False), 5.204),
        ((UnitKind.ATOM, "money", Role.AI, 10, False), 8.0),
        ((UnitKind.CLAUSE, "constraint", Role.SYSTEM, 1, False), 20.0),
        ((UnitKind.MESSAGE, "human", Role.HUMAN, 3, True), 0.0),
        ((UnitKind.PART, "media", Role.HUMAN, 3, True), 0.0),
    ],
)
def test_a_unit_weighs_what_it_is_by_who_said_it_how_often(
    unit: tuple[UnitKind, str, Role, int, bool], weight: float
) -> None:
    """A little more with each repetition; twice as much where somebody marked it."""
    kind, cls, role, count, marked = unit
    sources = [Source(seq, 0, 0, 0, 1) for seq in range(count)]
    one = Unit(RowKey(kind, cls, "x"), "x", role, Trust.USER, sources, marked=marked)

    assert salience(one) == weight


def test_every_class_has_a_weight() -> None:
    """In each role; people weigh most and tools least."""
    for cls in ClauseClass:
        assert clause_weight(cls, Role.HUMAN) > clause_weight(cls, Role.SYSTEM) > clause_weight(cls, Role.AI) > 0
    for kind in AtomClass:
        assert atom_weight(kind, Role.HUMAN) > atom_weight(kind, Role.AI) > atom_weight(kind, Role.TOOL) > 0


@pytest.mark.parametrize(
    ("kind", "cls", "role", "marked", "critical"),
    [
        (UnitKind.CLAUSE, "constraint", Role.HUMAN, False, True),
        (UnitKind.CLAUSE, "constraint", Role.AI, False, False),
        (UnitKind.CLAUSE, "open_question", Role.HUMAN, False, False),
        (UnitKind.CLAUSE, "open_question", Role.TOOL, True, True),
        (UnitKind.ATOM, "money", Role.HUMAN, False, True),
        (UnitKind.ATOM, "money", Role.TOOL, False, False),
        (UnitKind.ATOM, "money", Role.TOOL, True, True),
        (UnitKind.ATOM, "number", Role.HUMAN, True, False),
        (UnitKind.MESSAGE, "human", Role.HUMAN, True, False),
    ],
)
def test_what_must_not_be_lost(kind: UnitKind, cls: str, role: Role, marked: bool, critical: bool) -> None:
    """What people bound others to, and values of people or of marked messages."""
    unit = Unit(RowKey(kind, cls, "x"), "x", role, Trust.USER, [], marked=marked)

    assert is_critical(unit) == critical
