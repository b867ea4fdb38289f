"""Deletion of threads: one small commit hides a thread and ends what it does, then its rows go in batches.

SQLite has one write lock: the deletion of a long thread in one commit would make every other write wait for as long as
it takes. After the first commit no id, list, search, count or export finds the thread, its runs or its questions, and
its holder is refused. A row under a reserved tenant names what is left to remove, so a sweep finishes what a crash cut
short.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, exists, insert, select, update

from threadmark.db.removal import RemovalBatch
from threadmark.state import tables
from threadmark.state.database import Database
from threadmark.state.entries.run_status import SETTLED, RunStatus, ThreadStatus
from threadmark.state.errors import NotFound
from threadmark.state.threads.thread_rows import thread_columns
from threadmark.state.threads.threads import UNFINISHED_COPY, UNFINISHED_DELETION, lock_thread, tenant_of_copies

__all__ = [
    "Deletion",
    "RemoveOthers",
    "delete_thread",
    "finish_deletions",
    "purge_expired",
    "remove_deleted",
    "unfinished_deletions",
]

_ENDED = "its thread was deleted"
_UNFINISHED = (RunStatus.PENDING, RunStatus.RUNNING)


@dataclass(frozen=True, slots=True)
class Deletion:
    """A deleted thread some rows of which may be left, and the row that says so."""

    number: int  #: of the row under the reserved tenant
    thread: int  #: the number that the thread had
    stopped: tuple[str, ...] = ()  #: runs that it interrupted while they were executed


#: Removes rows that another package has about a thread (its number), as far as the batch allows; returns whether none
#: is left.
RemoveOthers = Callable[[Connection, int, RemovalBatch], bool]


def delete_thread(connection: Connection, tenant_id: str, thread_id: str) -> Deletion:
    """Hide a thread and end its runs and questions; its rows are left to `remove_deleted`. Its holder is refused from
    now on.

    A deletion of that id that was cut short is found again. Raises NotFound.
    """
    row = lock_thread(connection, tenant_id, thread_id)
    if row is not None:
        return _hide(connection, row)
    thread = tables.thread.c
    cut_short = select(tables.thread).where(
        thread.tenant_id == f"{UNFINISHED_DELETION}{tenant_id}", thread.thread_id.startswith(f"{thread_id} ")
    )
    left = connection.execute(cut_short.order_by(thread.number)).first()
    if left is None:
        raise NotFound("Thread", thread_id)
    return _deletion_of(left)


def purge_expired(connection: Connection, now_us: int, count_max: int) -> list[Deletion]:
    """Delete the expired threads of stateless runs whose runs have ended, as `delete_thread` does."""
    thread = tables.thread.c
    rows = connection.execute(
        select(tables.thread)
        .where(
            thread.expires_at.is_not(None),
            thread.expires_at < now_us,
            # Another sweep removes them.
            ~thread.tenant_id.startswith(UNFINISHED_COPY),
            # Not by status: a thread with an open question about a step in doubt is not busy, but not finished either.
            ~exists().where(tables.run.c.thread == thread.number, tables.run.c.status.not_in(SETTLED)),
        )
        .order_by(thread.expires_at)
        .limit(count_max)
        .with_for_update(skip_locked=True)
    ).all()
    return [_hide(connection, row) for row in rows]


def unfinished_deletions(connection: Connection, count_max: int, tenant_id: str | None = None) -> list[Deletion]:
    """Deleted threads with rows that are left, of a tenant or of all."""
    thread = tables.thread.c
    theirs = thread.tenant_id.startswith(UNFINISHED_DELETION)
    if tenant_id is not None:
        theirs = thread.tenant_id == f"{UNFINISHED_DELETION}{tenant_id}"
    found = select(tables.thread).where(theirs).order_by(thread.number).limit(count_max)
    return [_deletion_of(row) for row in connection.execute(found)]


async def finish_deletions(
    database: Database, deletions: Sequence[Deletion], remove_others: RemoveOthers | None = None
) -> None:
    """Remove what is left of deleted threads, in batches between which others write. Repeating it has no effect."""
    while deletions:
        unit = partial(remove_deleted, deletions=deletions, remove_others=remove_others)
        # Not as writes of the threads: on PostgreSQL those share a connection with the turns.
        deletions = await database.write(unit, repeatable=True)


def remove_deleted(
    connection: Connection, deletions: Sequence[Deletion], remove_others: RemoveOthers | None = None
) -> Sequence[Deletion]:
    """Remove as many rows of deleted threads as one commit should; returns the deletions of which some may be left."""
    batch = RemovalBatch()
    for at, deletion in enumerate(deletions):
        if batch.is_full:
            return deletions[at:]
        mine = tables.thread.c.number == deletion.number
        if connection.execute(select(tables.thread.c.number).where(mine).with_for_update()).first() is None:
            # Another process has finished it.
            continue
        if remove_others is not None and not remove_others(connection, deletion.thread, batch):
            return deletions[at:]
        if not _remove(connection, deletion.thread, batch):
            return deletions[at:]
        connection.execute(delete(tables.thread).where(mine))
    return ()


def _hide(connection: Connection, row: Row[Any]) -> Deletion:
    """Put a row in the place of a locked thread that says what is left of it."""
    thread, run, wait = tables.thread.c, tables.run.c, tables.wait.c
    number = row.number
    # Before its rows: a crash after this commit leaves the name of what is to be removed.
    left = thread_columns(
        tenant_id=f"{UNFINISHED_DELETION}{row.tenant_id}",
        thread_id=f"{row.thread_id} {number}",
        metadata={},
        now_us=row.updated_at,
        status=ThreadStatus.IDLE,
        expires_at_us=None,
    )
    added = connection.execute(insert(tables.thread).values(left).returning(thread.number)).scalar_one()
    connection.execute(delete(tables.thread).where(thread.number == number))
    connection.execute(delete(tables.thread_label).where(tables.thread_label.c.thread == number))
    running = select(run.run_id).where(run.thread == number, run.status == RunStatus.RUNNING)
    stopped = tuple(connection.scalars(running))
    # The places in the queue and the bounds of a tenant count these rows without their thread.
    connection.execute(
        update(tables.run)
        .where(run.thread == number, run.status.in_(_UNFINISHED))
        .values(status=RunStatus.INTERRUPTED, reason=_ENDED, hidden=True, parked=None, due_at=0)
    )
    connection.execute(
        update(tables.wait).where(wait.thread == number, wait.status == "open").values(status="superseded")
    )
    # A process that is copying it is refused, and what it wrote goes too.
    connection.execute(
        update(tables.thread).where(thread.tenant_id == tenant_of_copies(number)).values(fence=thread.fence + 1)
    )
    return Deletion(added, number, stopped)


def _remove(connection: Connection, number: int, batch: RemovalBatch) -> bool:
    """Remove rows of the thread with this number; returns whether none is left."""
    thread, entry, receipt, run = tables.thread.c, tables.entry.c, tables.receipt.c, tables.run.c
    copies = list(connection.scalars(select(thread.number).where(thread.tenant_id == tenant_of_copies(number))))
    # A worker of the previous version does not note of which thread a reply is.
    unnamed = and_(
        receipt.thread.is_(None),
        receipt.run_id.is_not(None),
        exists().where(run.run_id == receipt.run_id, run.thread == number),
    )
    wanted = (
        (tables.receipt, receipt.thread == number),
        (tables.receipt, unnamed),
        (tables.entry, entry.thread == number),
        (tables.branch, tables.branch.c.thread == number),
        (tables.wait, tables.wait.c.thread == number),
        (tables.run, run.thread == number),
        (tables.entry, entry.thread.in_(copies)),
        (tables.thread, thread.number.in_(copies)),
    )
    return all(batch.remove(connection, table, where) for table, where in wanted)


def _deletion_of(row: Row[Any]) -> Deletion:
    return Deletion(row.number, int(row.thread_id.rpartition(" ")[2]))
