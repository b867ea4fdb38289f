"""A thread that is copied in small batches while something else happens."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

from sqlalchemy import Connection, func, select

from tests.conformance.store import Store
from tests.support.factories import TENANT, human, replied
from threadmark.state import (
    Database,
    RunChanges,
    RunOutcome,
    RunStatus,
    StateUpdated,
    Thread,
    ThreadStatus,
    Update,
    copy_thread,
    fold,
    tables,
    update_state,
)

BATCH = 4
ENTRY_COUNT = 20
SECRET = "ALBATROSS-77"
SECRET_SEQ = 6
ENDED = RunChanges(ending=RunOutcome(status=RunStatus.SUCCESS, thread_status=ThreadStatus.IDLE))


class PowerCutError(Exception):
    """What every write fails with from some moment on."""


class Watched:
    """A database in which something happens after each write of a copy."""

    def __init__(self, store: Store, after_write: Callable[[], Awaitable[None]]) -> None:
        self._database, self._after_write = store.database, after_write

    async def write(self, unit: Any, **options: Any) -> Any:
        """The write, and what comes after it."""
        done = await self._database.write(unit, **options)
        await self._after_write()
        return done

    async def read(self, query: Any) -> Any:
        """The query's result."""
        return await self._database.read(query)


async def a_thread(store: Store) -> Thread:
    """A thread of ENTRY_COUNT entries, one of which says the secret."""
    claimed, writer = await store.begun("hello", thread_id="source", create_missing=True)
    await store.put(writer, replied(), move=ENDED)
    thread = await store.seen(claimed.thread)
    while thread.head_seq < ENTRY_COUNT:
        seq = thread.head_seq + 1
        said = human(SECRET if seq == SECRET_SEQ else f"number {seq}", f"human-{seq}")
        change = Update(thread=thread, entry=StateUpdated(messages=(said,)), expected_seq=thread.head_seq)
        await store.write(partial(update_state, change=change, now_us=store.now_us()))
        thread = await store.seen(thread)
    return thread


async def copy(store: Store, after_write: Callable[[], Awaitable[None]], look: Any = lambda *_: None) -> Thread:
    """A copy of the thread, while `after_write` happens after each write."""
    database = cast(Database, Watched(store, after_write))
    made = await copy_thread(database, TENANT, "source", now_us=store.now_us, look=look, receipt=lambda _: None)
    assert isinstance(made, tuple)
    return made[0]


async def numbers(store: Store) -> list[int]:
    """The numbers of all rows of threads, visible or not."""
    return await store.read(lambda connection: list(connection.scalars(select(tables.thread.c.number))))


async def stored(store: Store) -> str:
    """All that is stored of entries, of threads and their labels."""

    def query(connection: Connection) -> str:
        found = (tables.entry.c.payload, tables.thread.c.metadata, tables.thread_label.c.value)
        return repr([connection.scalars(select(each)).all() for each in found])

    return await store.read(query)


async def entry_count(store: Store) -> int:
    """Entries of all threads."""
    counted = select(func.count()).select_from(tables.entry)
    return await store.read(lambda connection: int(connection.execute(counted).scalar_one()))


async def check_whole(store: Store, source: Thread, copied: Thread) -> None:
    """The copy says what its source says, its chain holds, and there is nothing besides the two."""
    said = [fold(await store.entries(each.number)).messages for each in (source, copied)]
    assert said[0] == said[1]
    assert await store.journal.verify(copied) == []
    assert sorted(await numbers(store)) == sorted((source.number, copied.number))
    assert await entry_count(store) == source.head_seq + copied.head_seq
