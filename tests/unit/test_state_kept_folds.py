"""Folds that are kept, against a journal in SQLite's memory: when one is used, what is read, and what is let go."""

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, event, insert

from tests.support.factories import TENANT, Story, human, replied, started
from threadmark.state import Entry, Thread, ThreadId, ThreadStatus, fold
from threadmark.state.entries.entry import encode
from threadmark.state.entries.lineage import ROOT, Stretch
from threadmark.state.fold.fold_cache import FoldCache, empty_fold, fold_thread
from threadmark.state.tables import entry

NOW = datetime(2027, 1, 15, tzinfo=UTC)


class Book:
    """A journal in a database: its thread's row, and the queries that were put to it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.story = Story()
        self.queries: list[Any] = []
        event.listen(connection, "before_cursor_execute", lambda *args: self.queries.append(args[3]))

    def tell(self, *entries: Entry, salt: bytes = b"") -> None:
        """Append entries to the journal and to its table; the digest of each is its seq."""
        self.story.tell(*entries)
        for each in self.story.entries[-len(entries) :]:
            row = {"seq": each.seq, "branch": each.branch, "run": each.run, "fence": each.fence, "at": each.at_us}
            payload = encode(each.entry)
            digest = b"%d%b" % (each.seq, salt)
            self.connection.execute(
                insert(entry).values(thread=7, kind=each.kind, payload=payload, digest=digest, **row)
            )
        self.queries.clear()

    def thread(self, **changes: Any) -> Thread:
        """The thread's row at the head of the journal."""
        seq = len(self.story.entries)
        fields: dict[str, Any] = {
            "number": 7,
            "tenant_id": TENANT,
            "thread_id": ThreadId("thread-1"),
            "status": ThreadStatus.IDLE,
            "metadata": {},
            "failure": None,
            "created_at": NOW,
            "updated_at": NOW,
            "state_updated_at": NOW,
            "head_seq": seq,
            "head_digest": b"%d" % seq,
            "branch": 0,
            "branch_count": 1,
            "lineage": ROOT,
            "fence": 1,
            "owner": None,
            "inbox": 0,
            "erasures": 0,
        }
        return Thread(**fields | changes)

    @property
    def byte_count(self) -> int:
        """Bytes of its payloads."""
        return sum(len(encode(each.entry)) for each in self.story.entries)


@pytest.fixture
def book() -> Iterator[Book]:
    """A journal of three entries."""
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        entry.create(connection)
        book = Book(connection)
        book.tell(*(each.entry for each in Story.begun(replied()).entries))
        yield book
    engine.dispose()


def test_a_fold_is_of_its_thread_until_the_thread_changes(book: Book) -> None:
    """It may grow to what was appended; of another digest, another branch, an erasure, a shorter journal it is not."""
    folded = fold_thread(book.connection, book.thread())

    assert folded.is_of(book.thread())
    for changed, may_grow in (
        ({"head_seq": 4, "head_digest": b"4"}, True),
        ({"head_digest": b"x"}, True),
        ({"head_seq": 2, "head_digest": b"2"}, False),
        ({"lineage": (Stretch(0, 2), Stretch(1))}, False),
        ({"erasures": 1}, False),
    ):
        assert not folded.is_of(book.thread(**changed)), changed
        assert folded.may_grow_to(book.thread(**changed)) == may_grow, changed


def test_a_journal_of_nothing_folds_without_a_query(book: Book) -> None:
    """To nothing, and of no bytes."""
    empty = empty_fold(book.thread(head_seq=0, head_digest=b""))

    assert (empty.head_seq, empty.byte_count, empty.state, book.queries) == (0, 0, fold([]), [])


def test_a_fold_that_grows_reads_only_what_is_new(book: Book) -> None:
    """And the last entry again; it comes to what the whole journal folds to, with what others made of it."""
    base = fold_thread(book.connection, book.thread())
    base.around["view"] = "kept"
    assert (base.byte_count, base.state) == (book.byte_count, fold(book.story.entries))
    book.story.run = 2
    book.tell(started(human("more", "human-2"), run_id="run-2", execution_id="execution-2"))
    whole = fold_thread(book.connection, book.thread())
    book.queries.clear()

    grown = fold_thread(book.connection, book.thread(), base.copy())

    assert grown == whole
    assert (grown.byte_count, grown.around, whole.around) == (book.byte_count, {"view": "kept"}, {})
    assert grown.run_index.has_started(2)
    assert [parameters[1:] for parameters in book.queries] == [(3, 4)]
    assert base.state == fold(book.story.entries[:3])
    assert not base.run_index.has_started(2)


def test_a_fold_of_another_past_is_not_used(book: Book) -> None:
    """A database that was set back and went on from there has another entry at its place, or none."""
    base = fold_thread(book.connection, book.thread())
    other = Book(book.connection)
    book.connection.execute(entry.delete().where(entry.c.seq >= 3))
    other.story = Story.begun()
    other.tell(replied(text="otherwise"), salt=b"'")

    moved = fold_thread(book.connection, other.thread(), base.copy())
    assert [message.content for message in moved.state.messages] == ["hello", "otherwise"]
    book.connection.execute(entry.delete().where(entry.c.seq >= 3))
    moved = fold_thread(book.connection, other.thread(head_seq=3), base.copy())
    assert [message.content for message in moved.state.messages] == ["hello"]


def test_a_fold_sees_the_head_of_its_row_and_no_further(book: Book) -> None:
    """And of other threads nothing; an erased payload is passed over."""
    before = book.thread()
    book.tell(replied(ordinal=2, text="later"))
    assert [message.content for message in fold_thread(book.connection, before).state.messages] == ["hello", "hi"]

    book.connection.execute(entry.update().where(entry.c.seq == 3).values(payload=None))
    folded = fold_thread(book.connection, book.thread())
    assert [message.content for message in folded.state.messages] == ["hello", "later"]
    assert folded.byte_count == book.byte_count - len(encode(replied()))


def test_a_reader_is_given_a_copy_and_the_fold_is_kept(book: Book) -> None:
    """The second reader needs no query, and whatever it does with its own copy changes nothing."""
    cache = FoldCache()
    first = cache.read(book.connection, book.thread())
    first.state.by_id.clear()
    first.run_index.see(Story(started(), run=9).entries)
    book.queries.clear()

    second = cache.read(book.connection, book.thread())

    assert [message.content for message in second.state.messages] == ["hello", "hi"]
    assert not second.run_index.has_started(9)
    assert (cache.numbers, book.queries) == ([7], [])
    second.state.by_id.clear()
    found = cache.find(book.thread())
    assert found is not None
    assert found.state == fold(book.story.entries)


def test_a_reader_of_a_thread_that_went_on_reads_on(book: Book) -> None:
    """What it comes to is kept in the place of what was; the copy of before stays as it was."""
    cache = FoldCache()
    before = cache.read(book.connection, book.thread())
    book.tell(replied(ordinal=2))

    after = cache.read(book.connection, book.thread())

    assert len(book.queries) == 1
    assert (len(before.state.messages), len(after.state.messages)) == (2, 3)
    assert cache.byte_count == book.byte_count
    book.queries.clear()
    assert cache.read(book.connection, book.thread()) == after
    assert book.queries == []


def test_a_unit_that_writes_keeps_nothing(book: Book) -> None:
    """What it sees may never be committed; what was kept stays."""
    cache = FoldCache()
    assert cache.read(book.connection, book.thread(), keep=False).is_of(book.thread())
    assert cache.numbers == []
    kept = cache.read(book.connection, book.thread())
    before = book.thread()
    book.tell(replied(ordinal=2))
    cache.read(book.connection, book.thread(), keep=False)

    found = cache.find(before)
    assert found == kept


def test_a_fold_that_cannot_be_used_any_more_is_let_go(book: Book) -> None:
    """Erased words go with it, at the first look; of a thread that was never folded there is none."""
    cache = FoldCache()
    assert cache.find(book.thread()) is None
    cache.read(book.connection, book.thread())

    assert cache.find(book.thread(erasures=1)) is None
    assert (cache.numbers, cache.byte_count) == ([], 0)


def test_a_fold_that_is_asked_for_stays_and_what_nobody_asked_for_goes(book: Book) -> None:
    """A look makes it young again, and the last one to go; a minute without one is enough."""
    now = [100.0]
    cache = FoldCache(2 * book.byte_count, clock=lambda: now[0])
    folded = fold_thread(book.connection, book.thread())
    for number in (7, 8):
        cache.keep(number, folded)
    now[0] += 60.0
    assert cache.find(book.thread()) is not None
    assert cache.numbers == [8, 7]
    cache.forget()
    assert cache.numbers == [8, 7]
    now[0] += 0.5
    cache.forget()
    assert cache.numbers == [7]


def test_a_cache_of_no_bytes_keeps_nothing(book: Book) -> None:
    """Each reader folds for itself; by itself a cache keeps 64 MiB."""
    none, full = FoldCache(0), FoldCache()
    none.read(book.connection, book.thread())
    assert none.numbers == []
    folded = fold_thread(book.connection, book.thread())
    full.keep(1, dataclasses.replace(folded, byte_count=64 * 1024 * 1024))
    assert full.numbers == [1]
    full.keep(2, dataclasses.replace(folded, byte_count=64 * 1024 * 1024 + 1))
    assert full.numbers == [1]
