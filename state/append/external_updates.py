"""Writing to a thread from outside while no worker holds it.

Each takes the next fence, appends, and releases the thread in one transaction. A thread with an unfinished run refuses.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, update

from threadmark.state import statements, tables
from threadmark.state.append.journal import seal
from threadmark.state.append.run_changes import Fork, RunChanges, apply_run_changes
from threadmark.state.batches.append_batch import Append, append_batch
from threadmark.state.entries.entry import Entry, Recorded, kind_of
from threadmark.state.errors import Conflict, ThreadBusy
from threadmark.state.records import Thread
from threadmark.state.runs.cancellation import refresh_status

__all__ = ["Update", "append_external", "update_state"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """An entry to append at `expected_seq`, on a fork if `fork` is given; it answers the waits in `superseded`."""

    thread: Thread
    entry: Entry
    expected_seq: int
    fork: Fork | None = None
    superseded: tuple[str, ...] = ()


def update_state(connection: Connection, change: Update, now_us: int) -> Recorded:
    """Append the entry. Raises ThreadBusy while a run is unfinished, and Conflict if the thread has moved meanwhile."""
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
    """Append an entry that changes no message. Returns None while a run is unfinished: its holder must append it
    instead.

    The caller has locked the thread. `updated_at` does not change, because no message does.
    """
    # The entries of a run are contiguous: a reader that follows a run takes an entry of another origin for its end.
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
