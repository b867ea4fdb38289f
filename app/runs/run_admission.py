"""Accepting runs: from a caller's request to durable runs, and the notification of workers."""

from collections.abc import Iterable

from sqlalchemy import Connection

from threadmark.app.access import Caller, Scope
from threadmark.app.access.gate import Forbidden
from threadmark.app.http.body_errors import BodyRefused
from threadmark.app.runs.thread_state import position_seq
from threadmark.app.wire.conversations.run_request import RunSpec
from threadmark.state import (
    Acceptance,
    FindStart,
    NotFound,
    Receipt,
    Resume,
    RunRequest,
    RunSubmission,
    Start,
    fold,
    get_thread,
    read_entries,
    read_history,
    read_leaves,
    visible,
)
from threadmark.state.runs.run_bounds import RunBounds
from threadmark.workers.agents.agent import assistant_id_of
from threadmark.workers.agents.call_fit import answer_check
from threadmark.workers.wiring import Resources

__all__ = ["announce", "start_at", "start_finder", "submission_of"]

#: How long the thread of a stateless run stays, for late readers (10 minutes); a run in progress keeps it longer.
STATELESS_KEEP_S = 600
#: The same where the request had an Idempotency-Key: the key is kept no longer than its run.
STATELESS_KEYED_KEEP_S = 24 * 3600 + STATELESS_KEEP_S


def start_at(connection: Connection, caller: Caller, thread_id: str, checkpoint_id: str) -> Start:
    """The position that a checkpoint names. Raises NotFound, also for one of a run that was rolled back."""
    thread = get_thread(connection, caller.tenant_id, thread_id)
    entries = read_entries(connection, thread.number)
    seq = position_seq(entries, thread, checkpoint_id)
    position = read_history(entries, read_leaves(connection, thread.number)).positions.get(seq)
    if position is None:
        raise NotFound("Checkpoint", checkpoint_id)
    present = fold(visible(entries, thread.lineage)).position
    return Start(checkpoint_id, position, present is not None and present.seq == seq, thread.head_seq)


def start_finder(caller: Caller, thread_id: str, start: Start) -> FindStart:
    """Where a run leaves from: as it was read before, or read again where the thread has moved since."""

    def find(connection: Connection, head_seq: int) -> Start:
        if head_seq == start.head_seq:
            return start
        return start_at(connection, caller, thread_id, start.checkpoint_id)

    return find


def submission_of(
    spec: RunSpec,
    caller: Caller,
    wired: Resources,
    thread_id: str | None,
    receipt: Receipt | None,
    now_us: int,
    trace_parent: str | None = None,
    find_start: FindStart | None = None,
) -> RunSubmission:
    """The offer that the wish comes to. Raises BodyRefused (no such assistant), Forbidden (it may not answer)."""
    registry, settings = wired.registry, wired.settings
    agent = registry.find(spec.assistant)
    if agent is None:
        names = ", ".join(each.name for each in registry)
        raise BodyRefused("$.assistant_id", f"Invalid assistant: {spec.assistant!r}. There are: {names}")
    if spec.resumes and not caller.may(Scope.APPROVE):
        raise Forbidden(f"this key may not answer for a person: it lacks the scope {Scope.APPROVE}")
    return RunSubmission(
        tenant_id=caller.tenant_id,
        thread_id=thread_id,
        assistant=agent.name,
        assistant_id=assistant_id_of(agent.name),
        route=agent.route,
        request=RunRequest(
            messages=spec.messages,
            kwargs=spec.kwargs,
            resumes=spec.resumes,
            interrupt_before=spec.interrupt_before,
            interrupt_after=spec.interrupt_after,
            step_count_max=spec.step_count_max,
            tags=spec.tags,
            trace_parent=trace_parent,
        ),
        create_missing=spec.create_missing,
        metadata=spec.metadata,
        multitask=spec.multitask,
        resumable=spec.resumable,
        delay_us=spec.after_s * 1_000_000,
        expires_at_us=None if spec.keeps_thread else _expires_at_us(spec, receipt, now_us),
        resume=Resume(value=spec.resume, actor=f"key:{caller.key_id}") if spec.resumes else None,
        check_answer=answer_check(registry),
        find_start=find_start,
        receipt=receipt,
        bounds=RunBounds(scheduled_runs=settings.scheduled_runs_max, open_waits=settings.open_waits_max),
    )


def announce(wired: Resources, acceptances: Iterable[Acceptance]) -> None:
    """Tell the workers, after the commit, what came and which runs are to stop for it."""
    for each in acceptances:
        if each.run is not None:
            wired.notifier.notify(each.run.run_id, each.run.attempts + 1)
        wired.notifier.notice(each.cancelled)


def _expires_at_us(spec: RunSpec, receipt: Receipt | None, now_us: int) -> int:
    keep_s = STATELESS_KEEP_S if receipt is None else STATELESS_KEYED_KEEP_S
    return now_us + (spec.after_s + keep_s) * 1_000_000
