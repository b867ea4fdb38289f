"""Verification of a thread's ledgers over a store that is a few dictionaries: what it compares, and with what."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from tests.support.compaction_threads import ai, human, message, tool
from threadmark.compaction import verification
from threadmark.compaction.atoms import EXTRACTOR_VERSION
from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.input.source import Position, Role, SourceEntry
from threadmark.compaction.ledger import GENESIS, Account, Ledger, Row, Shown, close, erase_rows, judge
from threadmark.compaction.store import ledger_rows, orders, views
from threadmark.compaction.verification import LedgerCheck, check_compaction, check_thread

NOTHING = cast(Any, None)
ENTRIES = [human(1, "It is $900."), ai(2, "Yes."), tool(3, "5 EUR", "c"), human(4, "Later."), tool(5, "15%", "d")]


@dataclass
class Store:
    """What verification reads."""

    entries: list[SourceEntry] = field(default_factory=lambda: list(ENTRIES))
    erased: dict[Position, Role] = field(default_factory=dict)
    compactions: list[Any] = field(default_factory=list)
    rows: dict[str, tuple[Row, ...]] = field(default_factory=dict)
    last_root: str = GENESIS

    def commit(self, covered: tuple[int, ...] = (), masked: tuple[int, ...] = (), **changes: Any) -> Any:
        """Compact and keep the ledger, chained to the last one."""
        number = len(self.compactions) + 1
        gone = [each for each in self.entries if each.seq in covered or (each.seq in masked and each.role is Role.TOOL)]
        ledger = ledger_of(gone, self.last_root)
        done = {
            "compaction_id": f"c{number}",
            "thread": 7,
            "branch": 3,
            "head_seq": 5,
            "plan": SimpleNamespace(covered=covered, masked=masked),
            "extractor_version": EXTRACTOR_VERSION,
            "ordinal": number,
            "prev_ledger_root": self.last_root,
            "ledger_root": ledger.root,
        }
        made = SimpleNamespace(**done | changes)
        self.compactions.append(made)
        self.rows[f"c{number}"] = ledger.rows
        self.last_root = ledger.root
        return made


def ledger_of(covered: list[SourceEntry], previous_root: str) -> Ledger:
    """A ledger of entries of which nothing was kept."""
    account = Account(
        compaction_id="c",
        covered=covered,
        others=[],
        passages=[],
        new_segments=(),
        shown={entry.position: Shown.FULL for entry in covered},
    )
    return close(account, judge(account, Analyses()), b"x" * 32, previous_root)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty store in the place of the database."""
    store = Store()

    def entries_as_of(_connection: Any, thread: int, branch: int, head_seq: int, _counter: Any) -> list[SourceEntry]:
        assert (thread, branch, head_seq) == (7, 3, 5)
        return list(store.entries)

    def list_compactions(_connection: Any, thread: int, *, count_max: int | None, oldest_first: bool) -> list[Any]:
        assert (thread, count_max, oldest_first) == (7, None, True)
        return store.compactions

    monkeypatch.setattr(verification, "get_thread", lambda *_: SimpleNamespace(number=7))
    monkeypatch.setattr(verification, "entries_as_of", entries_as_of)
    monkeypatch.setattr(ledger_rows, "read_rows", lambda _, compaction_id: store.rows[compaction_id])
    monkeypatch.setattr(orders, "list_compactions", list_compactions)
    monkeypatch.setattr(views, "erased_in", lambda *_: store.erased)
    last = lambda *_: SimpleNamespace(ledger_root=store.last_root)  # noqa: E731
    monkeypatch.setattr(views, "read_current_view", last)
    return store


def damages() -> list[str | None]:
    """What is found of each ledger of the thread."""
    return [each.damage for each in check_thread(NOTHING, "t", "thread-1")]


def test_a_ledger_verifies_by_what_its_entries_say(store: Store) -> None:
    """Those that the plan covered, and of those that it masked the outputs of tools."""
    done = store.commit(covered=(1, 2), masked=(3, 4))

    check = check_compaction(NOTHING, done)
    assert check == LedgerCheck(
        compaction_id="c1", row_count=len(store.rows["c1"]), ledger_root=done.ledger_root, recounted=True, damage=None
    )
    store.entries[0] = human(1, "It is $901.")
    assert str(check_compaction(NOTHING, done).damage).startswith("the ledger does not verify: ")


def test_a_ledger_without_a_plan_covers_nothing(store: Store) -> None:
    """Rows of its own have no entry then."""
    done = store.commit(covered=(1,), plan=None)
    assert "stands in no entry" in str(check_compaction(NOTHING, done).damage)
    store.last_root = GENESIS
    assert check_compaction(NOTHING, store.commit(plan=None)).damage is None


def test_a_ledger_of_an_earlier_extractor_is_not_counted_again(store: Store) -> None:
    """And says so; its words are looked up at their places."""
    done = store.commit(covered=(1, 2), extractor_version=EXTRACTOR_VERSION - 1)
    assert check_compaction(NOTHING, done) == LedgerCheck(
        compaction_id="c1", row_count=len(store.rows["c1"]), ledger_root=done.ledger_root, recounted=False, damage=None
    )
    store.entries[0] = human(1, "It is $901.")
    assert check_compaction(NOTHING, done).damage is not None


def test_a_covered_entry_that_was_erased_is_known_by_its_place(store: Store) -> None:
    """Where the journal has it no more, or had it still when another branch was compacted."""
    done = store.commit(covered=(1, 2))
    store.rows["c1"] = tuple(erase_rows(store.rows["c1"], frozenset({1})))
    del store.entries[0]
    assert "stands in no entry" in str(check_compaction(NOTHING, done).damage)
    store.erased = {Position(1): Role.HUMAN, Position(9): Role.HUMAN, Position(2): Role.AI}
    assert check_compaction(NOTHING, done).damage is None
    store.entries.insert(0, msgspec.structs.replace(message(1, Role.HUMAN, ""), parts=(), erased=True))
    assert check_compaction(NOTHING, done).damage is None


def test_the_ledgers_of_a_thread_are_chained(store: Store) -> None:
    """In the order in which they were committed; one that was never committed is no link."""
    for covered in ((1,), (2,), (4,)):
        store.commit(covered=covered)
    store.compactions.append(SimpleNamespace(ordinal=0))
    store.compactions.reverse()

    assert damages() == [None, None, None]
    assert [each.compaction_id for each in check_thread(NOTHING, "t", "thread-1")] == ["c1", "c2", "c3"]
    store.compactions = [each for each in store.compactions if each.ordinal != 2]
    assert damages() == [None, "the ledger before it is not the one that it was chained to"]
    store.compactions = [each for each in store.compactions if each.ordinal not in (0, 1)]
    assert damages() == ["the ledger before it is not the one that it was chained to"]


def test_a_thread_names_its_last_ledger(store: Store) -> None:
    """Another one there is damage of the last; where that is damaged already, the first difference is reported."""
    assert damages() == []
    store.commit(covered=(1,))
    store.commit(covered=(2,))
    store.last_root = GENESIS
    assert damages() == [None, "the thread names another last ledger"]
    store.entries[1] = ai(2, "No.")
    assert str(damages()[1]).startswith("the ledger does not verify")
    store.compactions = store.compactions[1:]
    assert str(damages()[0]).startswith("the ledger does not verify")
