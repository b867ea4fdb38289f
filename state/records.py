"""Domain values of the stores: threads, runs and waits as other packages see them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from threadmark.state.entries.entry import Failure
from threadmark.state.entries.ids import ExecutionId, RunId, StepKey, ThreadId
from threadmark.state.entries.instants import from_us
from threadmark.state.entries.lineage import Lineage
from threadmark.state.entries.message import Message
from threadmark.state.entries.run_status import CancelAction, Multitask, ParkReason, RunStatus, ThreadStatus

__all__ = ["Run", "RunRequest", "Thread", "Wait", "run_of", "thread_of", "wait_of"]


class RunRequest(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What the caller of a run requested. `kwargs` is the original request, for display."""

    messages: tuple[Message, ...] = ()
    kwargs: dict[str, Any] = {}
    resumes: bool = False  #: the run was created by an answer to a wait
    from_seq: int | None = None  #: the position to fork from
    interrupt_before: tuple[str, ...] = ()
    interrupt_after: tuple[str, ...] = ()
    step_count_max: int | None = None
    tags: tuple[str, ...] = ()
    trace_parent: str | None = None  #: the `traceparent` of the request, to which the run's trace is linked


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """One conversation."""

    number: int
    tenant_id: str
    thread_id: ThreadId
    status: ThreadStatus
    metadata: dict[str, Any]
    failure: Failure | None
    created_at: datetime
    updated_at: datetime
    state_updated_at: datetime
    head_seq: int
    head_digest: bytes
    branch: int
    branch_count: int
    lineage: Lineage
    fence: int
    owner: str | None
    inbox: int  #: rises with every answer and cancellation from outside
    erasures: int  #: rises with every erasure in its journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One accepted request to advance a thread; `number` is its place in the order of acceptance."""

    number: int
    run_id: RunId
    tenant_id: str
    thread: int
    thread_id: ThreadId
    execution_id: ExecutionId
    assistant: str
    route: str
    status: RunStatus
    multitask: Multitask
    request: RunRequest
    metadata: dict[str, Any]
    resumable: bool
    created_at: datetime
    updated_at: datetime
    due_at_us: int
    parked: ParkReason | None
    attempts: int
    orphaned: int
    cancel: CancelAction | None
    reason: str | None
    failure: Failure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A question to a person."""

    wait_id: str
    tenant_id: str
    thread: int
    thread_id: ThreadId
    run: int
    execution_id: ExecutionId
    step_key: StepKey
    kind: str
    tool: str
    arguments: dict[str, Any]
    shown_digest: str
    status: str
    opened_at: datetime
    answer: Any
    answered_by: str | None
    answered_at: datetime | None
    effect: str | None = None  #: the tool's effect when the question was asked; None: unknown


def thread_of(row: Any) -> Thread:
    """The thread in a row of the thread table."""
    return Thread(
        number=row.number,
        tenant_id=row.tenant_id,
        thread_id=ThreadId(row.thread_id),
        status=ThreadStatus(row.status),
        metadata=msgspec.json.decode(row.metadata),
        failure=_failure(row.error),
        created_at=from_us(row.created_at),
        updated_at=from_us(row.updated_at),
        state_updated_at=from_us(row.state_updated_at),
        head_seq=row.head_seq,
        head_digest=row.head_digest,
        branch=row.branch,
        branch_count=row.branch_count,
        lineage=msgspec.json.decode(row.lineage, type=Lineage),
        fence=row.fence,
        owner=row.owner,
        inbox=row.inbox,
        erasures=row.erasures,
    )


def run_of(row: Any, thread_id: str | None = None) -> Run:
    """The run in a row of the run table; the row is joined with its thread's `thread_id`, unless that is given."""
    return Run(
        number=row.number,
        run_id=RunId(row.run_id),
        tenant_id=row.tenant_id,
        thread=row.thread,
        thread_id=ThreadId(row.thread_id if thread_id is None else thread_id),
        execution_id=ExecutionId(row.execution_id),
        assistant=row.assistant,
        route=row.route,
        status=RunStatus(row.status),
        multitask=Multitask(row.multitask),
        request=msgspec.json.decode(row.request, type=RunRequest),
        metadata=msgspec.json.decode(row.metadata),
        resumable=bool(row.resumable),
        created_at=from_us(row.created_at),
        updated_at=from_us(row.updated_at),
        due_at_us=row.due_at,
        parked=ParkReason(row.parked) if row.parked else None,
        attempts=row.attempts,
        orphaned=row.orphaned,
        cancel=CancelAction(row.cancel) if row.cancel else None,
        reason=row.reason,
        failure=_failure(row.error),
    )


def wait_of(row: Any, thread_id: str | None = None) -> Wait:
    """The wait in a row of the wait table; the row is joined with its thread's `thread_id`, unless that is given."""
    return Wait(
        wait_id=row.wait_id,
        tenant_id=row.tenant_id,
        thread=row.thread,
        thread_id=ThreadId(row.thread_id if thread_id is None else thread_id),
        run=row.run,
        execution_id=ExecutionId(row.execution_id),
        step_key=StepKey(row.step_key),
        kind=row.kind,
        tool=row.tool,
        arguments=msgspec.json.decode(row.arguments),
        shown_digest=row.shown_digest,
        status=row.status,
        opened_at=from_us(row.opened_at),
        answer=None if row.answer is None else msgspec.json.decode(row.answer),
        answered_by=row.answered_by,
        answered_at=None if row.answered_at is None else from_us(row.answered_at),
        effect=row.effect,
    )


def _failure(document: str | None) -> Failure | None:
    return None if document is None else msgspec.json.decode(document, type=Failure)
