"""Writing a thread from outside while nobody holds it: state updates and copies.

Each takes the next fence, appends and lets go, in one transaction; a thread that a run is moving refuses.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, update

from threadmark.state import statements, tables
from threadmark.state.append import chain
from threadmark.state.append.append_batch import Append, append_batch
from threadmark.state.append.journal import read_entries, seal
from threadmark.state.append.run_changes import Fork, RunChanges, apply_run_changes
from threadmark.state.entries.entry import Entry, Recorded, ViewChanged, kind_of
from threadmark.state.entries.ids import new_id
from threadmark.state.entries.lineage import visible
from threadmark.state.errors import Conflict, ThreadBusy
from threadmark.state.records import Thread, thread_of
from threadmark.state.runs.cancellation import refresh_status
from threadmark.state.threads import receipts
from threadmark.state.threads.receipts import Receipt, Reply
from threadmark.state.threads.thread_rows import create_thread
from threadmark.state.threads.threads import get_thread

__all__ = ["Update", "append_external", "copy_thread", "update_state"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """An entry to append at `expected_seq`, on a fork if `fork` says so; `superseded` are waits that it answers."""

    thread: Thread
    entry: Entry
    expected_seq: int
    fork: Fork | None = None
    superseded: tuple[str, ...] = ()


def update_state(connection: Connection, change: Update, now_us: int) -> Recorded:
    """Append the entry. Raises ThreadBusy while a run is unfinished, Conflict when the thread has moved meanwhile."""
    thread = change.thread
    connection.execute(statements.LOCK_THREAD, {"thread": thread.number})
    if statements.ACTIVE.first(connection, {"thread": thread.number}) is not None:
        raise ThreadBusy(thread.thread_id)
    row = connection.execute(
        update(tables.thread)
        .where(tables.thread.c.number == thread.number, tables.thread.c.head_seq == change.expected_seq)
        .values(fence=tables.thread.c.fence + 1, updated_at=now_us, state_updated_at=now_us)
        .returning(tables.thread.c.fence, tables.thread.c.head_digest)
    ).one_or_none()
    if row is None:
        raise Conflict(f"Thread {thread.thread_id} has moved meanwhile; read its state and try again.")
    branch = change.fork.branch if change.fork else thread.branch
    recorded = Recorded(change.expected_seq + 1, branch, None, row.fence, now_us, kind_of(change.entry), change.entry)
    sealed = seal(thread.number, thread.thread_id, row.head_digest, recorded)
    append = Append(thread.number, row.fence, change.expected_seq, recorded.seq, sealed.digest, [sealed.row])
    apply_run_changes(connection, thread, append, RunChanges(fork=change.fork, superseded=change.superseded), 0, now_us)
    if change.superseded:
        refresh_status(connection, thread.number, now_us)
    return recorded


def append_external(connection: Connection, thread: Thread, entry: Entry, now_us: int) -> Recorded | None:
    """Append an entry that changes no message; None while a run is unfinished, whose holder has to note it instead.

    The caller has locked the thread. What it was read for from outside stays as true as it was.
    """
    # The entries of a run stand together: whoever follows one takes what comes between them for its end.
    if statements.ACTIVE.first(connection, {"thread": thread.number}) is not None:
        return None
    row = connection.execute(
        update(tables.thread)
        .where(tables.thread.c.number == thread.number)
        .values(fence=tables.thread.c.fence + 1)
        .returning(tables.thread.c.fence, tables.thread.c.head_seq, tables.thread.c.head_digest)
    ).one()
    recorded = Recorded(row.head_seq + 1, thread.branch, None, row.fence, now_us, kind_of(entry), entry)
    sealed = seal(thread.number, thread.thread_id, row.head_digest, recorded)
    append_batch(
        connection, [Append(thread.number, row.fence, row.head_seq, recorded.seq, sealed.digest, [sealed.row])]
    )
    return recorded


def copy_thread(
    connection: Connection, tenant_id: str, thread_id: str, receipt: Receipt | None, now_us: int
) -> Thread | Reply:
    """A new thread with the visible entries and the metadata of another. Raises NotFound.

    The copy has a chain of its own and no runs; whatever goes on in it is a new execution with step keys of its own. It
    has no views either, so nothing tells of theirs.
    """
    replay = receipts.look_up(connection, tenant_id, receipt, now_us=now_us)
    if replay is not None:
        return replay
    source = get_thread(connection, tenant_id, thread_id)
    row = create_thread(
        connection, tenant_id=tenant_id, thread_id=new_id(now_us), metadata=source.metadata, now_us=now_us
    )
    if row is None:
        raise RuntimeError("a fresh id was taken")
    rows: list[tuple[Any, ...]] = []
    digest = chain.GENESIS
    seen = visible(read_entries(connection, source.number), source.lineage)
    for seq, each in enumerate((each for each in seen if not isinstance(each.entry, ViewChanged)), start=1):
        moved = Recorded(seq, 0, None, 0, each.at_us, each.kind, each.entry)
        sealed = seal(row.number, row.thread_id, digest, moved)
        digest = sealed.digest
        rows.append(sealed.row)
    if rows:
        append_batch(connection, [Append(row.number, 0, 0, len(rows), digest, rows)])
    copied = thread_of(connection.execute(select(tables.thread).where(tables.thread.c.number == row.number)).one())
    receipts.record(connection, tenant_id, receipt, copied)
    return copied
