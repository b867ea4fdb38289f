"""A database: writer threads with group commit, and readers with snapshots."""

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from sqlalchemy import Connection, Engine, make_url

from threadmark.db import DEFAULT_LIMITS, Condition, Limits, Purpose
from threadmark.db.engine import truncate_log
from threadmark.db.execution.pools import Pool
from threadmark.db.execution.snapshot_reader import SnapshotReader
from threadmark.db.execution.writer import Writer
from threadmark.state.batches.append_batch import OVERTAKEN, Append, AppendBatches, Appended, Outcome
from threadmark.state.engine import is_sqlite, normal_url, open_engine
from threadmark.state.errors import DatabaseAway, Overtaken

__all__ = ["READER_COUNT", "TURN_READER_COUNT", "Database"]

#: Reading connections: of a process that answers requests, and of one that only executes runs.
READER_COUNT = 4
TURN_READER_COUNT = 2
#: Writing connections: SQLite has one writer. On PostgreSQL, lease holders write on a connection of their own, so they
#: do not wait behind other writes, and their batches are as large as possible.
WRITER_PURPOSES = (Purpose.TURN_WRITE, Purpose.WRITE)
T = TypeVar("T")


class Database:
    """Runs units of work (plain functions over a Connection) outside the event loop.

    No connection is held while a tool or a model runs, and no cancellable task ever checks one out.
    """

    def __init__(
        self,
        write_engines: Sequence[Engine],
        read_engine: Engine,
        *,
        reader_count: int,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.url = read_engine.url
        self._is_sqlite = read_engine.dialect.name == "sqlite"
        self._write_engines = write_engines
        self._read_engine = read_engine
        self._writers = [
            Writer(engine, f"threadmark-writer-{number}", wait_s=limits.request_s, batching=AppendBatches())
            for number, engine in enumerate(write_engines)
        ]
        self._reader_count = reader_count
        self._reader = SnapshotReader(
            read_engine, "threadmark-reader", reader_count=reader_count, wait_s=limits.request_s, database="state"
        )
        self._upkeep = Pool("threadmark-upkeep", 1)
        self._is_closed = False

    @classmethod
    def open(
        cls,
        url: str,
        *,
        synchronous: str = "FULL",
        reader_count: int = READER_COUNT,
        limits: Limits = DEFAULT_LIMITS,
    ) -> "Database":
        """Open `url` (`sqlite:///path`, `postgresql://…`), whose tables already exist (see
        `threadmark.state.migrate`).
        """
        make_url(normal_url(url))
        purposes = WRITER_PURPOSES[:1] if is_sqlite(url) else WRITER_PURPOSES
        return cls(
            [
                open_engine(url, write=True, synchronous=synchronous, limits=limits, purpose=purpose)
                for purpose in purposes
            ],
            open_engine(url, write=False, synchronous=synchronous, limits=limits),
            reader_count=reader_count,
            limits=limits,
        )

    @property
    def commit_count(self) -> int:
        """The number of commits so far, for tests."""
        return sum(writer.commit_count for writer in self._writers)

    @property
    def read_count(self) -> int:
        """The number of queries so far, for tests."""
        return self._reader.read_count

    @property
    def connection_count_max(self) -> int:
        """The most connections that this object opens at once."""
        return len(self._writers) + self._reader_count

    @property
    def condition(self) -> Condition | None:
        """Why the last write outside a turn failed; None once a write has succeeded again."""
        return self._writer(None).condition

    @property
    def turns_stalled_s(self) -> float:
        """For how long no turn could be written (seconds); 0 on SQLite, where a write may wait for other processes."""
        return 0.0 if self._is_sqlite else self._writers[0].stalled_s

    async def write(self, unit: Callable[[Connection], T], *, thread: int | None = None, repeatable: bool = False) -> T:
        """The result of `unit` after its commit; a unit that raises is rolled back alone.

        Writes for one `thread` (its number) are applied in the order of the calls. A `repeatable` unit has no effect
        the second time, so it is retried if the reply to a commit was lost; any other unit raises OutcomeUnknown.
        Raises DatabaseAway when the database was unavailable for longer than writes wait, or refuses writes at present.
        """
        return cast(T, await self._writer(thread).submit(unit, thread=thread, repeatable=repeatable))

    async def append(self, append: Append) -> int | None:
        """The thread's inbox counter once the append is on disk; None if the fence or the head had moved.

        Raises Overtaken if the run was to end with it but has to roll back; nothing is written then.
        """
        outcome: Outcome = await self._writer(append.thread).submit(append, repeatable=bool(append.rows))
        if outcome == OVERTAKEN and append.end is not None:
            raise Overtaken(append.end.run)
        return outcome.inbox if isinstance(outcome, Appended) else None

    async def read(self, query: Callable[[Connection], T]) -> T:
        """The result of `query` over one snapshot; tenants take turns (see `Pool`).

        Raises DatabaseAway, or TookTooLong for a request that has exceeded its time limit. When the caller is
        cancelled, its query is cancelled too, also on the server.
        """
        return await self._reader.read(query)

    async def empty_log(self) -> None:
        """Checkpoint SQLite's write-ahead log and truncate it, so that no erased text remains in it.

        Raises DatabaseAway while a connection reads an older snapshot.
        """
        if self._is_sqlite and not await self._upkeep.run(lambda: truncate_log(self._write_engines[0])):
            raise DatabaseAway(Condition.BUSY)

    def hurry(self) -> None:
        """Prepare for shutdown: from now on writes hardly wait for an unavailable database."""
        for writer in self._writers:
            writer.hurry()

    async def close(self) -> None:
        """Commit what is queued and close every connection. Closing again has no effect."""
        if self._is_closed:
            return
        self._is_closed = True
        for writer in self._writers:
            await writer.close()
        await self._upkeep.run(self._reader.shutdown)
        self._upkeep.shutdown()
        for engine in (*self._write_engines, self._read_engine):
            engine.dispose()

    def _writer(self, thread: int | None) -> Writer:
        return self._writers[-1 if thread is None else 0]
