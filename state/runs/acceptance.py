"""Acceptance: one transaction that turns a request into a run. An acknowledged run survives any crash."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from sqlalchemy import Connection, select, update

from threadmark.state import statements, tables
from threadmark.state.entries.ids import ExecutionId, new_id
from threadmark.state.entries.run_status import CancelAction, Multitask, RunStatus, ThreadStatus
from threadmark.state.errors import NotFound, ThreadBusy
from threadmark.state.records import Run, RunRequest, Wait, run_of, wait_of
from threadmark.state.runs.cancellation import cancel_active
from threadmark.state.runs.resume import Question, Resume, answers_to
from threadmark.state.runs.run_bounds import NO_BOUNDS, RunBounds, check_open_waits, check_scheduled
from threadmark.state.runs.run_start import Start, leaves_from
from threadmark.state.threads import receipts
from threadmark.state.threads.receipts import Receipt, Reply
from threadmark.state.threads.thread_rows import create_thread, label_rows, thread_columns
from threadmark.state.threads.threads import lock_thread, merge_labels

__all__ = ["Acceptance", "AnswerCheck", "FindStart", "RunSubmission", "accept"]

#: Finds the position that the run starts from, given the thread's head seq; called with the thread locked.
FindStart = Callable[[Connection, int], Start]
#: Called with the thread locked, an open question and its answer, before the answer is recorded; raises Conflict.
AnswerCheck = Callable[[Connection, Wait, Any], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSubmission:
    """A request for a run. Without `thread_id` the run gets its own thread."""

    tenant_id: str
    thread_id: str | None
    assistant: str
    assistant_id: str
    request: RunRequest
    route: str | None = None  #: None: any worker that has the assistant
    create_missing: bool = False
    thread_metadata: dict[str, Any] | None = None
    metadata: dict[str, Any]
    multitask: Multitask = Multitask.ENQUEUE
    resumable: bool = False
    delay_us: int = 0
    expires_at_us: int | None = None  #: when a stateless run's thread may be deleted
    resume: Resume | None = None
    check_answer: AnswerCheck | None = None  #: for a run that answers
    find_start: FindStart | None = None  #: for a run that names a checkpoint
    receipt: Receipt | None = None
    bounds: RunBounds = NO_BOUNDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The accepted run, or the stored reply of its idempotency key."""

    run: Run | None
    replay: Reply | None = None
    cancelled: tuple[str, ...] = ()  #: runs that were asked to stop in favour of this one


def accept(connection: Connection, submission: RunSubmission, now_us: int) -> Acceptance:
    """Accept a run.

    Raises NotFound (no such thread), ThreadBusy (strategy `reject`), KeyReused, BoundReached, and for a resume whatever
    `answers_to` and `leaves_from` raise; nothing is changed then.
    """
    replay = receipts.look_up(connection, submission.tenant_id, submission.receipt, now_us=now_us)
    if replay is not None:
        return Acceptance(run=None, replay=replay)
    # After the receipt look-up: a repeated request still gets its reply.
    if submission.delay_us:
        check_scheduled(connection, submission.tenant_id, submission.bounds, now_us)
    if (alone := _accept_alone(connection, submission, now_us)) is not None:
        receipts.record(
            connection,
            submission.tenant_id,
            submission.receipt,
            alone,
            run_id=alone.run_id,
            thread=alone.thread,
        )
        return Acceptance(run=alone)
    thread, is_new = _thread(connection, submission, now_us)
    if submission.resume is None:
        check_open_waits(connection, submission.tenant_id, submission.bounds, None if is_new else thread.number)
    active = not is_new and statements.ACTIVE.first(connection, {"thread": thread.number}) is not None
    if active and submission.multitask is Multitask.REJECT:
        raise ThreadBusy(thread.thread_id)
    # With the thread locked: what was read before may be outdated, and the run would start from an old position.
    submission = _leaving(connection, submission, thread)
    cancelled: tuple[str, ...] = ()
    if active and submission.multitask in (Multitask.INTERRUPT, Multitask.ROLLBACK):
        cancelled = cancel_active(connection, thread.number, CancelAction(submission.multitask), now_us)
    # After cancellation, which may reopen questions that lapsed because of a run that never began.
    execution_id = _execution(connection, submission, thread, now_us, is_new=is_new)
    run = insert_run(connection, submission, thread.number, thread.thread_id, execution_id, now_us)
    if not is_new:
        merge_labels(connection, thread, _labels(submission), status=ThreadStatus.BUSY, updated_at=now_us)
    receipts.record(connection, submission.tenant_id, submission.receipt, run, run_id=run.run_id, thread=run.thread)
    return Acceptance(run=run, cancelled=cancelled)


def insert_run(
    connection: Connection,
    submission: RunSubmission,
    thread: int,
    thread_id: str,
    execution_id: ExecutionId,
    now_us: int,
) -> Run:
    """Insert the row of a new pending run."""
    row = statements.INSERT_RUN.first(connection, _columns(submission, execution_id, now_us) | {"thread": thread})
    return run_of(row, thread_id)


def _accept_alone(connection: Connection, submission: RunSubmission, now_us: int) -> Run | None:
    """Accept a run on its own thread in one statement; None, with nothing changed, if that is not possible."""
    if connection.dialect.name == "sqlite" or submission.thread_id is not None or submission.resume is not None:
        return None
    thread_id, metadata = new_id(now_us), {**(submission.thread_metadata or {}), **_labels(submission)}
    thread = thread_columns(
        tenant_id=submission.tenant_id,
        thread_id=thread_id,
        metadata=metadata,
        now_us=now_us,
        status=ThreadStatus.BUSY,
        expires_at_us=submission.expires_at_us,
    )
    labels = label_rows(None, metadata)
    values = _columns(submission, ExecutionId(new_id(now_us)), now_us)
    values |= {f"thread_{name}": value for name, value in thread.items()}
    values["open_waits_max"] = submission.bounds.open_waits
    values |= {"label_keys": [each["key"] for each in labels], "label_values": [each["value"] for each in labels]}
    row = statements.INSERT_RUN_AND_THREAD.first(connection, values)
    return None if row is None else run_of(row, thread_id)


def _columns(submission: RunSubmission, execution_id: ExecutionId, now_us: int) -> dict[str, Any]:
    """The columns of a new pending run, except its thread."""
    return {
        "run_id": new_id(now_us),
        "tenant_id": submission.tenant_id,
        "for_tenant": submission.tenant_id,
        "execution_id": execution_id,
        "assistant": submission.assistant,
        "route": submission.route or submission.assistant,
        "status": RunStatus.PENDING,
        "multitask": submission.multitask,
        "request": msgspec.json.encode(submission.request).decode(),
        "metadata": json.dumps(submission.metadata, ensure_ascii=False),
        "resumable": submission.resumable,
        "created_at": now_us,
        "updated_at": now_us,
        "due_at": now_us + submission.delay_us if submission.delay_us else 0,
        "attempts": 0,
        "orphaned": 0,
        "orphan_seq": 0,
        "hidden": False,
    }


def _labels(submission: RunSubmission) -> dict[str, Any]:
    return {"graph_id": submission.assistant, "assistant_id": submission.assistant_id}


def _thread(connection: Connection, submission: RunSubmission, now_us: int) -> tuple[Any, bool]:
    """The locked row of the thread, and whether it was created for this run."""
    if submission.thread_id is not None:
        row = lock_thread(connection, submission.tenant_id, submission.thread_id)
        if row is not None:
            return row, False
        if not submission.create_missing:
            raise NotFound("Thread", submission.thread_id)
    thread_id = submission.thread_id or new_id(now_us)
    made = create_thread(
        connection,
        tenant_id=submission.tenant_id,
        thread_id=thread_id,
        metadata={**(submission.thread_metadata or {}), **_labels(submission)},
        now_us=now_us,
        status=ThreadStatus.BUSY,
        expires_at_us=submission.expires_at_us,
    )
    # Another request has just created it.
    return (made, True) if made is not None else (lock_thread(connection, submission.tenant_id, thread_id), False)


def _execution(
    connection: Connection, submission: RunSubmission, thread: Any, now_us: int, *, is_new: bool
) -> ExecutionId:
    """The execution that the run is to continue, or the new one that it begins.

    Whether it can be continued is determined from the journal when the run begins.
    """
    fresh = ExecutionId(new_id(now_us))
    if submission.resume is not None:
        return _answer(connection, thread, submission, submission.resume, now_us)
    if is_new:
        return fresh
    if not submission.request.messages and submission.request.from_seq is None:
        return _last_execution(connection, thread.number) or fresh
    # From now on an answer fails because the thread has moved on.
    statements.SUPERSEDE.count(connection, {"thread_number": thread.number})
    return fresh


def _last_execution(connection: Connection, thread: int) -> ExecutionId | None:
    return connection.execute(
        select(tables.run.c.execution_id)
        .where(tables.run.c.thread == thread, tables.run.c.hidden.is_(False))
        .order_by(tables.run.c.number.desc())
        .limit(1)
    ).scalar_one_or_none()


def _leaving(connection: Connection, submission: RunSubmission, thread: Any) -> RunSubmission:
    """The submission with `from_seq` set, if it forks; a checkpoint at the thread's present position is no fork."""
    if submission.find_start is None:
        return submission
    from_seq = leaves_from(
        submission.find_start(connection, thread.head_seq),
        is_busy=thread.status == ThreadStatus.BUSY,
        resumes=submission.resume is not None,
        speaks=bool(submission.request.messages),
    )
    return replace(submission, request=msgspec.structs.replace(submission.request, from_seq=from_seq))


def _answer(connection: Connection, thread: Any, submission: RunSubmission, resume: Resume, now_us: int) -> ExecutionId:
    """Record the answers of a resume; returns the execution that asked."""
    questions = _questions(connection, thread.number)
    answers, execution_id = answers_to(thread.thread_id, resume.value, questions, submission.assistant)
    wait = tables.wait.c
    if submission.check_answer is not None:
        asked = connection.execute(select(tables.wait).where(wait.wait_id.in_(answers)))
        for each in [wait_of(row, thread.thread_id) for row in asked]:
            submission.check_answer(connection, each, answers[each.wait_id])
    for wait_id, value in answers.items():
        connection.execute(
            update(tables.wait)
            .where(wait.wait_id == wait_id)
            .values(
                status="answered",
                answer=msgspec.json.encode(value).decode(),
                answered_by=resume.actor,
                answered_at=now_us,
            )
        )
    return execution_id


def _questions(connection: Connection, thread: int) -> list[Question]:
    wait, run = tables.wait.c, tables.run.c
    rows = connection.execute(
        select(wait.wait_id, wait.kind, wait.status, wait.step_key, wait.execution_id, run.assistant)
        .join(tables.run, run.number == wait.run)
        .where(wait.thread == thread)
    )
    return [
        Question(
            wait_id=row.wait_id,
            kind=row.kind,
            status=row.status,
            step_key=row.step_key,
            execution_id=ExecutionId(row.execution_id),
            assistant=row.assistant,
        )
        for row in rows
    ]
