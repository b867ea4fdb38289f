"""A database with long threads on disk, and the service that compacts them: made for `bench.long_threads`."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec
from sqlalchemy import Connection, MetaData, Table, insert, select

from bench.parts.work import InstantModel
from threadmark.compaction import Compaction, CompactionService, Order, Policy, Row, SourceEntry
from threadmark.compaction import migrate as migrate_compaction
from threadmark.compaction.ledger.rows import row_id_of
from threadmark.state import (
    Database,
    Journal,
    Message,
    StateUpdated,
    Thread,
    ToolCall,
    Update,
    migrate,
    open_engine,
    open_thread,
    register,
    to_us,
    update_state,
)
from threadmark.state.tasks.task_claims import HeldTask, claim_tasks
from threadmark.state.tasks.tasks import NewTask, Task, add_task
from threadmark.workers.feeds.local_feed import LocalFeed
from threadmark.workers.models import ChatModel
from threadmark.workers.tasks.compaction_tasks import Compactor
from threadmark.workers.tasks.task_context import TaskContext
from threadmark.workers.turn.turn_parts import TurnParts

__all__ = ["MARK", "TENANT", "Shelf"]

TENANT, WORKER = "bench", "bench"
#: Stands for a thread's own number in the thread that others are copied from.
MARK = "7654321"
#: The tables that a thread and its compactions are in.
_THREADS, _LEDGERS, _VIEWS = "thread", "compaction_row", "compaction_view"
_COPIED = (
    _THREADS,
    "branch",
    "entry",
    "compaction",
    _VIEWS,
    "compaction_segment",
    "compaction_standing",
    _LEDGERS,
)
_ROW = msgspec.json.Decoder(Row)


class Shelf:
    """The database of a folder, on its disk, written as the server writes it."""

    def __init__(self, folder: Path) -> None:
        url = f"sqlite:///{folder / 'shelf.db'}"
        engine = open_engine(url, write=True)
        migrate(engine)
        migrate_compaction(engine)
        with engine.begin() as connection:
            register(connection, WORKER, 36_000, "{}")
        engine.dispose()
        self.path = folder / "shelf.db"
        self.database = Database.open(url)
        journal = Journal(self.database)
        self.service = CompactionService(self.database, now=lambda: datetime.now(UTC), fold_cache=journal.fold_cache)
        model = cast(ChatModel, InstantModel(1))
        self.compactor = Compactor(service=self.service, model=model, now=lambda: datetime.now(UTC), worker_id=WORKER)
        self.parts = TurnParts(
            database=self.database,
            journal=journal,
            model=model,
            feed=LocalFeed(),
            data_dir=folder,
            now=lambda: datetime.now(UTC),
            compactor=self.compactor,
        )

    async def keep(self, thread_id: str, entries: Sequence[SourceEntry]) -> None:
        """Write the messages as a thread, an entry for each, in one commit."""

        def unit(connection: Connection) -> None:
            now_us = self.parts.now_us()
            thread = open_thread(
                connection,
                tenant_id=TENANT,
                thread_id=thread_id,
                metadata={},
                keep_existing=False,
                receipt=None,
                now_us=now_us,
            )
            if not isinstance(thread, Thread):
                raise TypeError(thread)
            for seq, message in enumerate(map(_message, entries), start=thread.head_seq):
                change = Update(thread=thread, entry=StateUpdated(messages=(message,)), expected_seq=seq)
                update_state(connection, change, now_us)

        await self.database.write(unit)

    async def compact(self, thread_id: str, policy: Policy) -> Compaction:
        """Compact the thread by excerpts."""
        ordered, _ = await self.service.compactions.begin(
            TENANT, thread_id, Order(key=f"bench {thread_id}", policy=policy)
        )
        return await self.service.compactions.perform(ordered.compaction_id, holder="bench")

    async def task(self, kind: str, payload: dict[str, Any]) -> tuple[Task, TaskContext]:
        """A task of this kind, claimed as a worker claims it."""
        new = NewTask(tenant_id=TENANT, kind=kind, key=f"bench {to_us(datetime.now(UTC))}", payload=payload)
        await self.database.write(lambda connection: add_task(connection, new, self.parts.now_us()))
        (task,) = await self.database.write(lambda connection: claim_tasks(connection, WORKER, [kind], 1))
        held = HeldTask(number=task.number, task_id=task.task_id, fence=task.fence)
        return task, TaskContext(self.database, held)

    async def copy(self, thread_id: str, done: Compaction, count: int) -> int:
        """Copy a compacted thread with its journal and ledger so often, each with values of its own; rows of ledgers.

        In every copy another number stands for MARK, in the words and so in the names of rows.
        """
        first = await self.database.read(lambda connection: _rows_of(connection, done.thread))
        names = [thread_id, done.compaction_id, *{str(row["view_id"]) for row in first[_VIEWS]}]
        for start in range(1, count + 1, 200):
            numbers = range(start, min(start + 200, count + 1))
            await self.database.write(
                lambda connection, numbers=numbers: _add_copies(connection, first, names, numbers)  # type: ignore[misc]
            )
        return count * len(first[_LEDGERS])


def _message(entry: SourceEntry) -> Message:
    return Message(
        id=f"m{entry.seq}",
        type=entry.role.value,
        content="".join(part.text for part in entry.parts),
        name=entry.name,
        tool_calls=tuple(
            ToolCall(call.call_id, call.name, msgspec.json.decode(call.arguments)) for call in entry.calls
        ),
        tool_call_id=entry.answers[0] if entry.answers else None,
    )


def _tables(connection: Connection) -> list[Table]:
    found = MetaData()
    found.reflect(connection, only=_COPIED)
    return [found.tables[name] for name in _COPIED]


def _rows_of(connection: Connection, thread: int) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for table in _tables(connection):
        column = table.c.number if table.name == _THREADS else table.c.thread
        found[table.name] = [dict(row) for row in connection.execute(select(table).where(column == thread)).mappings()]
    return found


def _add_copies(
    connection: Connection, first: dict[str, list[dict[str, Any]]], names: Sequence[str], numbers: range
) -> None:
    thread = first[_THREADS][0]["number"]
    for table in _tables(connection):
        made = [
            copied for number in numbers for copied in _copies(table.name, first[table.name], names, number, thread)
        ]
        if made:
            connection.execute(insert(table), made)


def _copies(
    table: str, rows: Sequence[dict[str, Any]], names: Sequence[str], number: int, thread: int
) -> Iterator[dict[str, Any]]:
    exchanged = {MARK: f"{number:07}", **{name: f"{name[:-7]}{number:07}" for name in names}}
    pattern = re.compile("|".join(map(re.escape, exchanged)))
    pattern_b = re.compile(pattern.pattern.encode())
    exchanged_b = {old.encode(): new.encode() for old, new in exchanged.items()}
    for row in rows:
        copied: dict[str, Any] = {}
        for name, value in row.items():
            if isinstance(value, str):
                copied[name] = pattern.sub(lambda found: exchanged[found[0]], value)
            elif isinstance(value, bytes):
                copied[name] = pattern_b.sub(lambda found: exchanged_b[found[0]], value)
            else:
                copied[name] = value
        if table == _THREADS:
            copied["number"] = thread + number
        else:
            copied["thread"] = thread + number
        if table == "entry":
            del copied["number"]
        if table == _LEDGERS and copied["body"] != row["body"]:
            copied["row_id"] = row_id_of(_ROW.decode(copied["body"]).key)
        yield copied
