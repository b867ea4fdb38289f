"""Limits on a tenant's waiting work: runs that are due later, and unanswered questions.

Checked in the transaction that accepts a run, after its idempotency key. Processes that accept at the same moment do
not see each other's rows, so each may exceed the limit by one.
"""

from dataclasses import dataclass

from sqlalchemy import BigInteger, Connection, String, bindparam, func, literal_column, select

from threadmark.db.portable import APPROVAL, OPEN, PENDING
from threadmark.db.prepared import Prepared
from threadmark.state import tables
from threadmark.state.errors import BoundReached
from threadmark.state.statements import open_wait_count

__all__ = ["NO_BOUNDS", "RunBounds", "check_open_waits", "check_scheduled"]

_NONE = 2**31 - 1
#: When to retry (seconds): a person may answer at any time, and a scheduled run has a due time.
OPEN_WAITS_RETRY_S = 60.0
_RETRY_S_MAX = 3_600.0
_run, _wait = tables.run.c, tables.wait.c
_scheduled = (
    select(_run.due_at)
    .where(
        _run.tenant_id == bindparam("tenant_id", type_=String()),
        _run.status == PENDING,
        # Matches the predicate of the index: a run that has begun no longer counts as scheduled.
        _run.attempts == literal_column("0"),
        _run.due_at > literal_column("0"),
        _run.due_at > bindparam("now_us", type_=BigInteger()),
    )
    .order_by(_run.due_at)
    .limit(bindparam("count_max", type_=BigInteger()))
    .subquery()
)
_SCHEDULED = Prepared(select(func.count().label("count"), func.min(_scheduled.c.due_at).label("first_us")))
_OPEN_WAITS = Prepared(select(open_wait_count.label("count")))
_ASKS = Prepared(
    select(_wait.wait_id)
    .where(_wait.thread == bindparam("thread"), _wait.status == OPEN, _wait.kind == APPROVAL)
    .limit(1)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBounds:
    """How many scheduled runs, and how many open questions, a tenant may have."""

    scheduled_runs: int = _NONE
    open_waits: int = _NONE


NO_BOUNDS = RunBounds()


def check_scheduled(connection: Connection, tenant_id: str, bounds: RunBounds, now_us: int) -> None:
    """Raise BoundReached if the tenant may not schedule another run."""
    if bounds.scheduled_runs == _NONE:
        return
    values = {"tenant_id": tenant_id, "now_us": now_us, "count_max": bounds.scheduled_runs}
    row = _SCHEDULED.first(connection, values)
    if row is not None and row.count >= bounds.scheduled_runs:
        retry_s = min(_RETRY_S_MAX, (row.first_us - now_us) / 1_000_000)
        raise BoundReached("scheduled_runs", bounds.scheduled_runs, retry_s)


def check_open_waits(connection: Connection, tenant_id: str, bounds: RunBounds, thread: int | None = None) -> None:
    """Raise BoundReached if the tenant has as many open questions as it may.

    A thread with an open approval of its own does not count as another: its new run withdraws the question.
    """
    if bounds.open_waits == _NONE:
        return
    row = _OPEN_WAITS.first(connection, {"tenant_id": tenant_id, "open_waits_max": bounds.open_waits})
    if row is None or row.count < bounds.open_waits:
        return
    if thread is None or _ASKS.first(connection, {"thread": thread}) is None:
        raise BoundReached("open_waits", bounds.open_waits, OPEN_WAITS_RETRY_S)
