"""Claims: which run a worker advances, and under which fence.

The database does all lease arithmetic, by its own clock. A claim raises the fence, so later writes of the former holder
are refused.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Connection, func, select, update

from threadmark.db.portable import PENDING
from threadmark.db.prepared import Prepared, row_maker
from threadmark.state import statements, tables
from threadmark.state.entries.entry import Failure
from threadmark.state.entries.instants import FAR_US, database_now_us
from threadmark.state.entries.run_status import ParkReason, RunStatus, ThreadStatus
from threadmark.state.records import Run, Thread, Wait, run_of, thread_of, wait_of
from threadmark.state.runs import claim_statements

__all__ = [
    "Claim",
    "Held",
    "Inbox",
    "claim",
    "claim_run",
    "claim_suspect",
    "look_for_suspects",
    "next_due_us",
    "own",
    "read_inbox",
    "release",
]


_RUN_ROW, _THREAD_ROW = row_maker(tables.run.c.keys()), row_maker(tables.thread.c.keys())
_WIDTH = len(tables.run.c)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A run and the lease of its thread: `thread.fence` is the number of the lease."""

    run: Run
    thread: Thread
    answers: tuple[Wait, ...]  #: answers that the journal lacks
    was_orphan: bool = False  #: taken over from a worker without a live lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A thread that a worker holds, its run and its fence; `inbox` counts what came from outside."""

    run: int
    thread: int
    fence: int
    inbox: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """What came from outside for the holder of a thread: answers that are not folded in yet, and a cancellation."""

    run: Run
    answers: tuple[Wait, ...]


def claim(
    connection: Connection,
    worker_id: str,
    routes: Collection[str],
    count_max: int,
    *,
    orphan_count_max: int | None = None,
    with_suspects: bool = True,
) -> list[Claim]:
    """Take up to `count_max` runs: orphans first (up to `orphan_count_max` of them), then pending runs that are due.

    A pending run is eligible when its thread has no owner and no earlier run of the thread is unfinished; tenants take
    turns. An orphan is a running run whose thread's owner has no live lease. `routes` names what this worker can run.

    Suspects, at which workers died repeatedly, are left to `claim_suspect`.
    """
    bound = count_max if orphan_count_max is None else min(count_max, orphan_count_max)
    wanted = {"routes": list(routes), "count_max": count_max, "with_suspects": with_suspects}
    if connection.dialect.name != "sqlite":
        wanted |= {"worker_id": worker_id, "orphan_count_max": max(0, bound)}
        return _claims(connection, claim_statements.CLAIM.tuples(connection, wanted)) if count_max > 0 else []
    orphans = _candidates(connection, claim_statements.ORPHANS, wanted, bound)
    return _take(
        connection,
        worker_id,
        orphans,
        _candidates(connection, claim_statements.DUE, wanted, count_max - len(orphans)),
    )


def claim_suspect(connection: Connection, worker_id: str, routes: Collection[str]) -> Claim | None:
    """Take one orphan at which workers died repeatedly; None if there is none.

    The worker takes nothing else until the run has progressed: if the worker dies, this run is the cause.
    """
    wanted = {"routes": list(routes), "count_max": 1}
    if connection.dialect.name != "sqlite":
        suspects = claim_statements.CLAIM_SUSPECT.tuples(connection, wanted | {"worker_id": worker_id})
        taken = _claims(connection, suspects)
    else:
        taken = _take(connection, worker_id, _candidates(connection, claim_statements.SUSPECTS, wanted, 1), [])
    return next(iter(taken), None)


def look_for_suspects(connection: Connection, worker_id: str, routes: Collection[str]) -> tuple[bool, bool]:
    """Whether a suspect is waiting, and whether no live worker holds less than this one (it frees up soonest)."""
    wanted = {"routes": list(routes), "worker_id": worker_id}
    (seen,) = claim_statements.LOOK_FOR_SUSPECTS.all(connection, wanted)
    return bool(seen.waits), bool(seen.is_freest)


def claim_run(connection: Connection, worker_id: str, routes: Collection[str], run_id: str) -> Claim | None:
    """Take this run, if it is pending, due and eligible as for `claim`; otherwise None."""
    wanted = {"routes": list(routes), "count_max": 1, "run_id": run_id}
    if connection.dialect.name != "sqlite":
        taken = _claims(connection, claim_statements.CLAIM_RUN.tuples(connection, wanted | {"worker_id": worker_id}))
    else:
        taken = _take(connection, worker_id, [], _candidates(connection, claim_statements.DUE_RUN, wanted, 1))
    return next(iter(taken), None)


def own(connection: Connection, worker_id: str) -> list[Held]:
    """The threads that a worker holds, according to the database."""
    rows = connection.execute(statements.OWN, {"worker_id": worker_id})
    return [Held(run=row.number, thread=row.thread, fence=row.fence, inbox=row.inbox) for row in rows]


def release(
    connection: Connection,
    held: Held,
    *,
    delay_us: int = 0,
    failure: Failure | None = None,
    back_off: Callable[[int], int | None] | None = None,
) -> bool:
    """Release a thread whose turn broke off; its run is due again after `delay_us`. False if it was taken meanwhile.

    With a `failure` that the run is to blame for, the failure is stored and counted. `back_off` maps the number of
    turns in a row without progress to the delay of the run (microseconds), or to None for a run to quarantine.
    """
    let_go = connection.execute(
        update(tables.thread)
        .where(tables.thread.c.number == held.thread, tables.thread.c.fence == held.fence)
        .values(owner=None)
    )
    if let_go.rowcount != 1:
        return False
    values: dict[str, Any] = {"due_at": database_now_us() + delay_us}
    if failure is not None and back_off is not None:
        rest_us = back_off(connection.execute(statements.COUNT_ORPHAN, {"run_number": held.run}).scalar_one())
        document = msgspec.json.encode(failure).decode()
        values = {"error": document, "parked": ParkReason.BROKEN, "due_at": database_now_us() + (rest_us or 0)}
        if rest_us is None:
            values |= {"parked": ParkReason.QUARANTINED, "due_at": FAR_US}
            connection.execute(
                update(tables.thread)
                .where(tables.thread.c.number == held.thread)
                .values(status=ThreadStatus.ERROR, error=document)
            )
    connection.execute(
        update(tables.run)
        .where(tables.run.c.number == held.run, tables.run.c.status == RunStatus.RUNNING)
        .values(status=RunStatus.PENDING, updated_at=database_now_us(), **values)
    )
    return True


def next_due_us(connection: Connection) -> int | None:
    """Microseconds until the next pending run is due (0: now); None when nothing is pending."""
    run = tables.run.c
    due = connection.execute(
        select(func.min(run.due_at), database_now_us()).where(run.status == PENDING, run.hidden.is_(False))
    ).one()
    return None if due[0] is None else max(0, due[0] - due[1])


def read_inbox(connection: Connection, thread: int, run: int) -> Inbox | None:
    """The present state of the holder's run, and the answers that the journal lacks; None if the run was deleted."""
    row = connection.execute(statements.RUN, {"run": run}).one_or_none()
    if row is None:
        return None
    return Inbox(run=run_of(row), answers=tuple(_unfolded(connection, {thread: row.thread_id})))


def _claims(connection: Connection, rows: list[tuple[Any, ...]]) -> list[Claim]:
    """The claims in the rows of PostgreSQL's one statement."""
    if not rows:
        return []
    runs = [_RUN_ROW(row[:_WIDTH]) for row in rows]
    threads = [thread_of(_THREAD_ROW(row[_WIDTH + 1 : -1])) for row in rows]
    lacking = {each.number: each.thread_id for each, row in zip(threads, rows, strict=True) if row[-1]}
    answers = _unfolded(connection, lacking) if lacking else []
    return [
        Claim(
            run=run_of(run, thread.thread_id),
            thread=thread,
            answers=tuple(each for each in answers if each.thread == thread.number),
            was_orphan=row[_WIDTH],
        )
        for run, thread, row in zip(runs, threads, rows, strict=True)
    ]


def _candidates(
    connection: Connection, statement: Prepared, wanted: Mapping[str, Any], count_max: int
) -> list[tuple[int, int]]:
    if count_max <= 0:
        return []
    return [(row.number, row.thread) for row in statement.all(connection, {**wanted, "count_max": count_max})]


def _take(
    connection: Connection, worker_id: str, orphans: list[tuple[int, int]], due: list[tuple[int, int]]
) -> list[Claim]:
    candidates = orphans + due
    if not candidates:
        return []
    threads = [thread for _, thread in candidates]
    held = claim_statements.TAKE_THREADS.all(connection, {"threads": threads, "worker_id": worker_id})
    owned = {row.number: thread_of(row) for row in held}
    for run, _ in orphans:
        connection.execute(statements.COUNT_ORPHAN, {"run_number": run})
    runs = claim_statements.TAKE_RUNS.all(connection, {"runs": [run for run, _ in candidates]})
    taken = {row.number: row for row in runs}
    answers = _unfolded(connection, {each.number: each.thread_id for each in owned.values()})
    return [
        Claim(
            run=run_of(taken[run], owned[thread].thread_id),
            thread=owned[thread],
            answers=tuple(each for each in answers if each.thread == thread),
            was_orphan=(run, thread) in orphans,
        )
        for run, thread in candidates
    ]


def _unfolded(connection: Connection, threads: Mapping[int, str]) -> list[Wait]:
    rows = claim_statements.UNFOLDED.all(connection, {"threads": list(threads)})
    return [wait_of(each, threads[each.thread]) for each in rows]
