"""The row changes of an append: the run's end or parking, waits opened and closed, a fork.

Run status, thread status and the entry that explains them change in one transaction, under the fence.
"""

from dataclasses import dataclass

import msgspec
from sqlalchemy import Connection, insert, select, update

from threadmark.state import statements, tables
from threadmark.state.batches.append_batch import Append, Appended, RunEnd, append_batch
from threadmark.state.entries.entry import WaitOpened
from threadmark.state.entries.ids import ExecutionId
from threadmark.state.entries.lineage import Lineage
from threadmark.state.errors import LeaseLost, Overtaken, ThreadGone
from threadmark.state.records import Thread
from threadmark.state.runs.run_outcome import RunOutcome
from threadmark.state.tasks.tasks import NewTask, add_task

__all__ = ["Fork", "RunChanges", "apply_run_changes", "refuse_stale"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A new branch, and the lineage of its tip."""

    branch: int
    parent: int
    fork_seq: int
    lineage: Lineage


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChanges:
    """Everything that changes together with an append."""

    ending: RunOutcome | None = None
    execution_id: ExecutionId | None = None
    begins: ExecutionId | None = None  #: the new execution, if the run could not continue the old one
    opened: tuple[WaitOpened, ...] = ()
    folded: tuple[str, ...] = ()  #: waits whose answer is now in the journal
    superseded: tuple[str, ...] = ()
    fork: Fork | None = None
    tasks: tuple[NewTask, ...] = ()  #: background tasks that the appended entries call for

    def end_alone(self, run: int, now_us: int) -> RunEnd | None:
        """The end of the run, if nothing else changes; it can share a statement with the appends of other threads."""
        ending = self.ending
        if ending is None or ending.hidden or not ending.is_settled:
            return None
        if self.begins or self.opened or self.folded or self.superseded or self.fork or self.tasks:
            return None
        return RunEnd(run, ending, now_us)


def apply_run_changes(
    connection: Connection, thread: Thread, append: Append, move: RunChanges, run: int, now_us: int
) -> int:
    """One unit of work: append under the fence, and change the related rows; returns the inbox counter.

    Repeatable: a change that was already committed, but whose reply was lost, is not made again.

    Raises LeaseLost or ThreadGone when the fence has moved, and Overtaken when the run was asked to roll back before
    it could end; nothing is written then.
    """
    (outcome,) = append_batch(connection, [append])
    if not isinstance(outcome, Appended):
        refuse_stale(connection, thread)
        raise LeaseLost(thread.thread_id, thread.fence)
    if outcome.repeated:
        return outcome.inbox
    if move.fork is not None:
        _fork(connection, thread, move.fork)
    if move.begins is not None:
        connection.execute(update(tables.run).where(tables.run.c.number == run).values(execution_id=move.begins))
    _waits(connection, thread, move, run, now_us)
    for each in move.tasks:
        add_task(connection, each, now_us)
    if move.ending is not None:
        _end(connection, thread, move.ending, run, now_us)
    return outcome.inbox


def refuse_stale(connection: Connection, thread: Thread) -> None:
    """Raise ThreadGone if the thread was deleted."""
    found = connection.execute(select(tables.thread.c.number).where(tables.thread.c.number == thread.number))
    if found.one_or_none() is None:
        raise ThreadGone(thread.thread_id, thread.fence)


def _fork(connection: Connection, thread: Thread, fork: Fork) -> None:
    connection.execute(
        insert(tables.branch),
        {"thread": thread.number, "branch": fork.branch, "parent": fork.parent, "fork_seq": fork.fork_seq},
    )
    connection.execute(
        update(tables.thread)
        .where(tables.thread.c.number == thread.number)
        .values(
            branch=fork.branch,
            branch_count=fork.branch + 1,
            lineage=msgspec.json.encode(fork.lineage).decode(),
        )
    )


def _waits(connection: Connection, thread: Thread, move: RunChanges, run: int, now_us: int) -> None:
    wait = tables.wait.c
    for each in move.opened:
        connection.execute(
            insert(tables.wait),
            {
                "wait_id": each.wait_id,
                "tenant_id": thread.tenant_id,
                "thread": thread.number,
                "run": run,
                "execution_id": move.execution_id,
                "step_key": each.step_key,
                "kind": each.kind,
                "tool": each.tool,
                "arguments": msgspec.json.encode(each.arguments).decode(),
                "shown_digest": each.shown_digest,
                "effect": each.effect,
                "status": "open",
                "opened_at": now_us,
            },
        )
    if move.folded:
        connection.execute(update(tables.wait).where(wait.wait_id.in_(move.folded)).values(folded=True))
    if move.superseded:
        connection.execute(
            update(tables.wait)
            .where(wait.wait_id.in_(move.superseded), wait.status.in_(["open", "superseded"]))
            .values(status="superseded", folded=True)
        )


def _end(connection: Connection, thread: Thread, ending: RunOutcome, run: int, now_us: int) -> None:
    ended = connection.execute(
        statements.END_RUN,
        {
            "run": run,
            "may_settle": ending.hidden or not ending.is_settled,
            "to_status": ending.status,
            "to_reason": ending.reason,
            "to_error": ending.error,
            "to_parked": ending.parked,
            "to_due_at": statements.due_at_of(ending.parked, ending.due_at_us),
            "to_hidden": ending.hidden,
            "now_us": now_us,
        },
    )
    if ended.rowcount != 1:
        raise Overtaken(run)
    connection.execute(
        statements.END_THREAD,
        {
            "thread_number": thread.number,
            "run": run,
            "to_stay": ending.parked is not None,
            "to_status": ending.thread_status,
            "to_error": ending.thread_error,
            "now_us": now_us,
        },
    )
