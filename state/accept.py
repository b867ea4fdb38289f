"""Acceptance: one transaction that turns a request into a run. What it answered survives any crash."""

import json
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Connection, insert, select, update

from state import receipts, statements, tables
from state.cancel import cancel_active
from state.errors import NotFound, NothingToResume, Refused, ThreadBusy
from state.ids import ExecutionId, new_id
from state.receipts import Receipt, Reply
from state.records import Run, RunRequest, run_of
from state.run import CancelAction, Multitask, RunStatus, ThreadStatus
from state.threads import create_thread, label_thread

__all__ = ["Acceptance", "Offer", "Resume", "accept"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Answers to the open approvals of a thread: one value, or a value for each wait id."""

    value: Any
    actor: str


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
    receipt: Receipt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The accepted run, or the reply that its idempotency key stands for already."""

    run: Run | None
    replay: Reply | None = None
    cancelled: tuple[str, ...] = ()  #: runs that were asked to stop for this one


def accept(connection: Connection, offer: Offer, now_us: int) -> Acceptance:
    """Accept a run.

    Raises NotFound (no such thread), ThreadBusy (strategy `reject`), NothingToResume, Refused (an ambiguous resume)
    and KeyReused; nothing is changed then.
    """
    replay = receipts.look_up(connection, offer.tenant_id, offer.receipt, now_us=now_us)
    if replay is not None:
        return Acceptance(run=None, replay=replay)
    thread = _thread(connection, offer, now_us)
    active = connection.execute(statements.ACTIVE, {"thread": thread.number}).first() is not None
    if active and offer.multitask is Multitask.REJECT:
        raise ThreadBusy(thread.thread_id)
    execution_id = ExecutionId(new_id(now_us))
    if offer.resume is not None:
        execution_id = _answer(connection, thread.number, thread.thread_id, offer.resume, now_us)
    elif not offer.request.messages and offer.request.from_seq is None:
        execution_id = _last_execution(connection, thread.number) or execution_id
    else:
        # Whoever answers from now on is told that the thread has moved on.
        connection.execute(
            update(tables.wait)
            .where(
                tables.wait.c.thread == thread.number, tables.wait.c.status == "open", tables.wait.c.kind == "approval"
            )
            .values(status="superseded")
        )
    cancelled: tuple[str, ...] = ()
    if active and offer.multitask in (Multitask.INTERRUPT, Multitask.ROLLBACK):
        cancelled = cancel_active(connection, thread.number, CancelAction(offer.multitask), now_us)
    run = insert_run(connection, offer, thread.number, execution_id, now_us)
    label_thread(connection, thread.number, {"graph_id": offer.assistant, "assistant_id": offer.assistant_id})
    connection.execute(
        update(tables.thread)
        .where(tables.thread.c.number == thread.number)
        .values(status=ThreadStatus.BUSY, updated_at=now_us)
    )
    receipts.record(connection, offer.tenant_id, offer.receipt, run, run_id=run.run_id)
    return Acceptance(run=run, cancelled=cancelled)


def insert_run(connection: Connection, offer: Offer, thread: int, execution_id: ExecutionId, now_us: int) -> Run:
    """The row of a new pending run."""
    run_id = new_id(now_us)
    inserted = connection.execute(
        insert(tables.run).returning(tables.run.c.number),
        {
            "run_id": run_id,
            "tenant_id": offer.tenant_id,
            "thread": thread,
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
            "stamp": _stamp(connection, offer.tenant_id),
            "attempts": 0,
            "orphaned": 0,
            "orphan_seq": 0,
            "hidden": False,
        },
    )
    row = connection.execute(statements.RUN, {"run": inserted.scalar_one()}).one()
    return run_of(row)


def _stamp(connection: Connection, tenant_id: str) -> int:
    own, head = connection.execute(statements.STAMP, {"tenant_id": tenant_id}).one()
    return max(-1 if own is None else own, (head or 0) - 1) + 1


def _thread(connection: Connection, offer: Offer, now_us: int) -> Any:
    if offer.thread_id is not None:
        row = connection.execute(
            select(tables.thread)
            .where(tables.thread.c.tenant_id == offer.tenant_id, tables.thread.c.thread_id == offer.thread_id)
            .with_for_update()
        ).one_or_none()
        if row is not None:
            return row
        if not offer.create_missing:
            raise NotFound("Thread", offer.thread_id)
    return create_thread(
        connection,
        tenant_id=offer.tenant_id,
        thread_id=offer.thread_id or new_id(now_us),
        metadata=offer.thread_metadata or {},
        now_us=now_us,
        expires_at_us=offer.expires_at_us,
    )


def _last_execution(connection: Connection, thread: int) -> ExecutionId | None:
    return connection.execute(
        select(tables.run.c.execution_id)
        .where(tables.run.c.thread == thread, tables.run.c.hidden.is_(False))
        .order_by(tables.run.c.number.desc())
        .limit(1)
    ).scalar_one_or_none()


def _answer(connection: Connection, thread: int, thread_id: str, resume: Resume, now_us: int) -> ExecutionId:
    """Record the answers of a resume; the conditional update lets one of two resumes win."""
    wait = tables.wait.c
    rows = connection.execute(
        select(wait.wait_id, wait.execution_id).where(
            wait.thread == thread, wait.status == "open", wait.kind == "approval"
        )
    ).all()
    if not rows:
        raise NothingToResume(thread_id)
    ids = [row.wait_id for row in rows]
    if isinstance(resume.value, dict) and resume.value and set(resume.value) <= set(ids):
        answers = dict(resume.value)
    elif len(ids) == 1:
        answers = {ids[0]: resume.value}
    else:
        raise Refused(
            "Several questions are open; resume with an object that maps an interrupt id to its answer: "
            + ", ".join(sorted(ids))
        )
    for wait_id, value in answers.items():
        connection.execute(
            update(tables.wait)
            .where(wait.wait_id == wait_id, wait.status == "open")
            .values(
                status="answered",
                answer=msgspec.json.encode(value).decode(),
                answered_by=resume.actor,
                answered_at=now_us,
            )
        )
    return ExecutionId(rows[0].execution_id)
