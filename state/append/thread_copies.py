"""Copies of threads: the entries in batches under a reserved tenant, then a small commit that publishes them.

SQLite has one write lock: a copy of a long thread in one commit would make every other write wait for as long as it
takes. An unfinished copy is in no list, search, count or export, and no id finds it. It expires: a sweep removes what a
crash left.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection, delete, insert, select, update

from threadmark.state import tables
from threadmark.state.append.journal import Sealed, read_entries, seal
from threadmark.state.batches.append_batch import Append, append_batch
from threadmark.state.database import Database
from threadmark.state.entries.entry import Recorded, ViewChanged
from threadmark.state.entries.ids import new_id
from threadmark.state.entries.lineage import visible
from threadmark.state.errors import Conflict, NotFound
from threadmark.state.records import Thread, thread_of
from threadmark.state.threads import receipts
from threadmark.state.threads.receipts import Receipt, Reply
from threadmark.state.threads.thread_numbers import lock_number, thread_numbers_of
from threadmark.state.threads.thread_rows import create_thread, label_rows
from threadmark.state.threads.threads import UNFINISHED_COPY, get_thread, tenant_of_copies

__all__ = ["clear_copies", "copy_thread", "expired_copies", "unfinished_copies"]

#: Entries that one commit writes or removes, and about how many bytes of them it writes.
BATCH_COUNT = 200
BATCH_BYTES = 1_000_000
#: An unfinished copy is removed after this time (seconds); one that takes longer is begun anew.
KEEP_S = 3600
#: How often a copy is begun, at most: words may be erased from its source meanwhile.
ATTEMPT_COUNT = 3
#: Unfinished copies that one sweep removes.
CLEARED_COUNT_MAX = 100
#: Of an unfinished copy. Its removal takes the next one.
_FENCE = 0
T = TypeVar("T")


async def copy_thread(
    database: Database,
    tenant_id: str,
    thread_id: str,
    *,
    now_us: Callable[[], int],
    look: Callable[[Connection, Thread], T],
    receipt: Callable[[T], Receipt | None],
) -> tuple[Thread, T] | Reply:
    """A new thread with the visible entries and the metadata of another, and what `look` returned; a Reply if the
    receipt's key already has one.

    `look` reads the complete copy outside the write lock, before it is shown. The copy has its own hash chain and no
    runs; anything it continues is a new execution with its own step keys. It has no views either, so the entries that
    describe views are left out.

    It has the entries that its source had when it was begun, without words that were erased before it is shown. Raises
    NotFound, and Conflict if its source lost words again and again.
    """
    for _ in range(ATTEMPT_COUNT):
        source = await database.read(partial(get_thread, tenant_id=tenant_id, thread_id=thread_id))
        number: int | None = None
        shown: Thread | Reply | None = None
        try:
            number = await database.write(partial(_begin, source=source, now_us=now_us()))
            await _write_entries(database, source, number)
            looked = await database.read(partial(_look, number=number, look=look))
            show = partial(_show, source=source, number=number, receipt=receipt(looked), now_us=now_us())
            shown = await database.write(show, repeatable=True)
        except _Outdated:
            continue
        finally:
            if number is not None and not isinstance(shown, Thread):
                await _clear(database, number)
        return (shown, looked) if isinstance(shown, Thread) else shown
    raise Conflict(f"Thread {thread_id} is losing messages at present; copy it again later.")


async def clear_copies(database: Database, find: Callable[[Connection], list[int]]) -> int:
    """Remove the unfinished copies that `find` returns, in batches, and return their number.

    A process that is still writing one of them has to start again.
    """
    numbers = await database.read(find)
    for number in numbers:
        await _clear(database, number)
    return len(numbers)


def expired_copies(connection: Connection, now_us: int) -> list[int]:
    """The numbers of the unfinished copies that have expired."""
    thread = tables.thread.c
    found = select(thread.number).where(thread.expires_at < now_us, thread.tenant_id.startswith(UNFINISHED_COPY))
    return list(connection.scalars(found.limit(CLEARED_COUNT_MAX)))


def unfinished_copies(connection: Connection, source: int) -> list[int]:
    """The numbers of the unfinished copies of a thread (by its number). They may have words that it has lost."""
    thread = tables.thread.c
    return list(connection.scalars(select(thread.number).where(thread.tenant_id == tenant_of_copies(source))))


class _Outdated(Exception):
    """Words were erased from the source meanwhile, or the copy was removed; it has to be begun anew."""


@dataclass(frozen=True, slots=True)
class _Page:
    """Entries for the copy, and after which entry of the source it goes on; None at the end."""

    appends: list[Append]
    after_seq: int | None


def _begin(connection: Connection, source: Thread, now_us: int) -> int:
    """The number of a new, empty copy."""
    _refuse_outdated(connection, source)
    row = create_thread(
        connection,
        tenant_id=tenant_of_copies(source.number),
        thread_id=new_id(now_us),
        metadata={},
        now_us=now_us,
        expires_at_us=now_us + KEEP_S * 1_000_000,
    )
    if row is None:
        raise RuntimeError("a fresh id was taken")
    return int(row.number)


def _refuse_outdated(connection: Connection, source: Thread) -> Thread:
    """The source as it is now, locked: an erasure that began before is counted, and a later one finds the copy."""
    found = lock_number(connection, source.number)
    if found is None:
        raise NotFound("Thread", source.thread_id)
    if found.erasures != source.erasures:
        raise _Outdated
    return found


async def _write_entries(database: Database, source: Thread, number: int) -> None:
    after_seq: int | None = 0
    while after_seq is not None:
        page = await database.read(partial(_next_page, source=source, number=number, after_seq=after_seq))
        for each in page.appends:
            # Not as a write of this thread: on PostgreSQL those share a connection with the turns.
            if (await database.write(partial(append_batch, appends=[each]), repeatable=True))[0] is None:
                raise _Outdated
        after_seq = page.after_seq


def _next_page(connection: Connection, source: Thread, number: int, after_seq: int) -> _Page:
    copied = _unfinished(connection, number)
    found = read_entries(connection, source.number, after_seq, BATCH_COUNT)
    there = [each for each in found if each.seq <= source.head_seq]
    chosen = (each for each in visible(there, source.lineage) if not isinstance(each.entry, ViewChanged))
    is_last = len(there) < BATCH_COUNT
    return _Page(list(_appends(copied, chosen)), None if is_last else there[-1].seq)


def _appends(copied: Thread, entries: Iterable[Recorded]) -> Iterator[Append]:
    """Appends of about BATCH_BYTES each, chained to the head of the copy."""
    seq, digest = copied.head_seq, copied.head_digest
    batch: list[Sealed] = []
    byte_count = 0
    for each in entries:
        moved = Recorded(seq + len(batch) + 1, 0, None, 0, each.at_us, each.kind, each.entry)
        batch.append(seal(copied.number, copied.thread_id, digest, moved))
        digest = batch[-1].digest
        byte_count += len(batch[-1].payload)
        if byte_count >= BATCH_BYTES:
            yield _append(copied.number, seq, batch)
            seq, batch, byte_count = seq + len(batch), [], 0
    if batch:
        yield _append(copied.number, seq, batch)


def _append(number: int, after_seq: int, batch: Sequence[Sealed]) -> Append:
    rows = [each.row for each in batch]
    return Append(number, _FENCE, after_seq, after_seq + len(rows), batch[-1].digest, rows)


def _look(connection: Connection, number: int, look: Callable[[Connection, Thread], T]) -> T:
    return look(connection, _unfinished(connection, number))


def _unfinished(connection: Connection, number: int) -> Thread:
    copied = thread_numbers_of(connection, number)
    if copied is None:
        raise _Outdated
    return copied


def _show(connection: Connection, source: Thread, number: int, receipt: Receipt | None, now_us: int) -> Thread | Reply:
    """Give the copy to the tenant of its source, with the metadata that the source has now."""
    # What raises after this gives the key back.
    replay = receipts.look_up(connection, source.tenant_id, receipt, now_us=now_us)
    if replay is not None:
        return replay
    metadata = _refuse_outdated(connection, source).metadata
    copied = lock_number(connection, number)
    if copied is None or copied.fence != _FENCE:
        raise _Outdated
    if copied.tenant_id == source.tenant_id:
        # Its commit was not answered, and this is the second time.
        return copied
    row = connection.execute(
        update(tables.thread)
        .where(tables.thread.c.number == number)
        .values(
            tenant_id=source.tenant_id,
            metadata=json.dumps(metadata, ensure_ascii=False),
            created_at=now_us,
            updated_at=now_us,
            state_updated_at=now_us,
            expires_at=None,
        )
        .returning(tables.thread)
    ).one()
    if metadata:
        connection.execute(insert(tables.thread_label), label_rows(number, metadata))
    shown = thread_of(row)
    receipts.record(connection, source.tenant_id, receipt, shown, thread=number)
    return shown


async def _clear(database: Database, number: int) -> None:
    while await database.write(partial(_remove_some, number=number), repeatable=True):
        pass


def _remove_some(connection: Connection, number: int) -> bool:
    """Remove some entries of an unfinished copy; returns whether there are more. Its writer is refused from then on."""
    copied = lock_number(connection, number)
    if copied is None or not copied.tenant_id.startswith(UNFINISHED_COPY):
        return False
    mine = tables.thread.c.number == number
    connection.execute(update(tables.thread).where(mine).values(fence=copied.fence + 1))
    some = select(tables.entry.c.number).where(tables.entry.c.thread == number).limit(BATCH_COUNT)
    numbers = list(connection.scalars(some))
    connection.execute(delete(tables.entry).where(tables.entry.c.number.in_(numbers)))
    if len(numbers) == BATCH_COUNT:
        return True
    connection.execute(delete(tables.thread).where(mine))
    return False
