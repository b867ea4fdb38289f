"""Acceptance: one transaction that turns a request into a run. What it answered survives any crash."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from sqlalchemy import Connection, select, update

from threadmark.state import statements, tables
from threadmark.state.entries.ids import ExecutionId, new_id
from threadmark.state.errors import NotFound, ThreadBusy
from threadmark.state.records import Run, RunRequest, run_of
from threadmark.state.runs.cancellation import cancel_active
from threadmark.state.runs.resume import Question, Resume, answers_to
from threadmark.state.runs.run_start import Start, leaves_from
from threadmark.state.runs.run_status import CancelAction, Multitask, RunStatus, ThreadStatus
from threadmark.state.threads import receipts
from threadmark.state.threads.receipts import Receipt, Reply
from threadmark.state.threads.thread_rows import create_thread, label_rows, thread_columns
from threadmark.state.threads.threads import lock_thread, merge_labels

__all__ = ["Acceptance", "FindStart", "Offer", "accept"]

#: Where the run leaves from, for a thread whose head is at this seq; called under the lock of the thread.
FindStart = Callable[[Connection, int], Start]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A request for a run. Without `thread_id` the run gets a thread of its own."""

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
    expires_at_us: int | None = None  #: when a stateless run's thread may go
    resume: Resume | None = None
    find_start: FindStart | None = None  #: of a run that names a checkpoint
    receipt: Receipt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The accepted run, or the reply that its idempotency key stands for already."""

    run: Run | None
    replay: Reply | None = None
    cancelled: tuple[str, ...] = ()  #: runs that were asked to stop for this one


def accept(connection: Connection, offer: Offer, now_us: int) -> Acceptance:
    """Accept a run.

    Raises NotFound (no such thread), ThreadBusy (strategy `reject`), KeyReused, and for a resume what `answers_to` and
    `leaves_from` raise; nothing is changed then.
    """
    replay = receipts.look_up(connection, offer.tenant_id, offer.receipt, now_us=now_us)
    if replay is not None:
        return Acceptance(run=None, replay=replay)
    if (alone := _accept_alone(connection, offer, now_us)) is not None:
        receipts.record(connection, offer.tenant_id, offer.receipt, alone, run_id=alone.run_id)
        return Acceptance(run=alone)
    thread, is_new = _thread(connection, offer, now_us)
    active = not is_new and statements.ACTIVE.first(connection, {"thread": thread.number}) is not None
    if active and offer.multitask is Multitask.REJECT:
        raise ThreadBusy(thread.thread_id)
    # Under the lock: what was read before it may have moved, and the run would leave from where nobody stands.
    offer = _leaving(connection, offer, thread)
    cancelled: tuple[str, ...] = ()
    if active and offer.multitask in (Multitask.INTERRUPT, Multitask.ROLLBACK):
        cancelled = cancel_active(connection, thread.number, CancelAction(offer.multitask), now_us)
    # After that: a question that was asked no longer, because of a run that never began, may be answered again.
    execution_id = _execution(connection, offer, thread, now_us, is_new=is_new)
    run = insert_run(connection, offer, thread.number, thread.thread_id, execution_id, now_us)
    if not is_new:
        merge_labels(connection, thread, _labels(offer), status=ThreadStatus.BUSY, updated_at=now_us)
    receipts.record(connection, offer.tenant_id, offer.receipt, run, run_id=run.run_id)
    return Acceptance(run=run, cancelled=cancelled)


def insert_run(
    connection: Connection, offer: Offer, thread: int, thread_id: str, execution_id: ExecutionId, now_us: int
) -> Run:
    """The row of a new pending run."""
    row = statements.INSERT_RUN.first(connection, _columns(offer, execution_id, now_us) | {"thread": thread})
    return run_of(row, thread_id)


def _accept_alone(connection: Connection, offer: Offer, now_us: int) -> Run | None:
    """A run on a thread of its own, where that is one statement; None where it is not, and nothing is done."""
    if connection.dialect.name == "sqlite" or offer.thread_id is not None or offer.resume is not None:
        return None
    thread_id, metadata = new_id(now_us), {**(offer.thread_metadata or {}), **_labels(offer)}
    thread = thread_columns(
        tenant_id=offer.tenant_id,
        thread_id=thread_id,
        metadata=metadata,
        now_us=now_us,
        status=ThreadStatus.BUSY,
        expires_at_us=offer.expires_at_us,
    )
    labels = label_rows(None, metadata)
    values = _columns(offer, ExecutionId(new_id(now_us)), now_us)
    values |= {f"thread_{name}": value for name, value in thread.items()}
    values |= {"label_keys": [each["key"] for each in labels], "label_values": [each["value"] for each in labels]}
    row = statements.INSERT_RUN_AND_THREAD.first(connection, values)
    return None if row is None else run_of(row, thread_id)


def _columns(offer: Offer, execution_id: ExecutionId, now_us: int) -> dict[str, Any]:
    """The columns of a new pending run, but for its thread."""
    return {
        "run_id": new_id(now_us),
        "tenant_id": offer.tenant_id,
        "for_tenant": offer.tenant_id,
        "execution_id": execution_id,
        "assistant": offer.assistant,
        "route": offer.route or offer.assistant,
        "status": RunStatus.PENDING,
        "multitask": offer.multitask,
        "request": msgspec.json.encode(offer.request).decode(),
        "metadata": json.dumps(offer.metadata, ensure_ascii=False),
        "resumable": offer.resumable,
        "created_at": now_us,
        "updated_at": now_us,
        "due_at": now_us + offer.delay_us if offer.delay_us else 0,
        "attempts": 0,
        "orphaned": 0,
        "orphan_seq": 0,
        "hidden": False,
    }


def _labels(offer: Offer) -> dict[str, Any]:
    return {"graph_id": offer.assistant, "assistant_id": offer.assistant_id}


def _thread(connection: Connection, offer: Offer, now_us: int) -> tuple[Any, bool]:
    """The locked row of the thread, and whether it was made for this run."""
    if offer.thread_id is not None:
        row = lock_thread(connection, offer.tenant_id, offer.thread_id)
        if row is not None:
            return row, False
        if not offer.create_missing:
            raise NotFound("Thread", offer.thread_id)
    thread_id = offer.thread_id or new_id(now_us)
    made = create_thread(
        connection,
        tenant_id=offer.tenant_id,
        thread_id=thread_id,
        metadata={**(offer.thread_metadata or {}), **_labels(offer)},
        now_us=now_us,
        status=ThreadStatus.BUSY,
        expires_at_us=offer.expires_at_us,
    )
    # Somebody else made it in this very moment.
    return (made, True) if made is not None else (lock_thread(connection, offer.tenant_id, thread_id), False)


def _execution(connection: Connection, offer: Offer, thread: Any, now_us: int, *, is_new: bool) -> ExecutionId:
    """The execution that the run is to carry on, or the one that it begins.

    Whether it can still be carried on is seen when the run begins, from the journal.
    """
    fresh = ExecutionId(new_id(now_us))
    if offer.resume is not None:
        return _answer(connection, thread, offer.resume, offer.assistant, now_us)
    if is_new:
        return fresh
    if not offer.request.messages and offer.request.from_seq is None:
        return _last_execution(connection, thread.number) or fresh
    # Whoever answers from now on is told that the thread has moved on.
    statements.SUPERSEDE.count(connection, {"thread_number": thread.number})
    return fresh


def _last_execution(connection: Connection, thread: int) -> ExecutionId | None:
    return connection.execute(
        select(tables.run.c.execution_id)
        .where(tables.run.c.thread == thread, tables.run.c.hidden.is_(False))
        .order_by(tables.run.c.number.desc())
        .limit(1)
    ).scalar_one_or_none()


def _leaving(connection: Connection, offer: Offer, thread: Any) -> Offer:
    """The offer as a fork, or as none where its checkpoint says where the thread stands."""
    if offer.find_start is None:
        return offer
    from_seq = leaves_from(
        offer.find_start(connection, thread.head_seq),
        is_busy=thread.status == ThreadStatus.BUSY,
        resumes=offer.resume is not None,
        speaks=bool(offer.request.messages),
    )
    return replace(offer, request=msgspec.structs.replace(offer.request, from_seq=from_seq))


def _answer(connection: Connection, thread: Any, resume: Resume, assistant: str, now_us: int) -> ExecutionId:
    """Record the answers of a resume; the execution that asked."""
    questions = _questions(connection, thread.number)
    answers, execution_id = answers_to(thread.thread_id, resume.value, questions, assistant)
    wait = tables.wait.c
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
