"""The outbox: which index entries are behind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from memory.tables import assertion
from memory.tables_jobs import outbox

__all__ = ["Due", "due", "enqueue_again", "pending_count", "put_off", "settle"]

#: The wait after a failed attempt, doubled each time.
BACKOFF_US, BACKOFF_DOUBLING_MAX = 1_000_000, 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """An assertion whose entry is behind, the outbox rows that say so, and how often it failed."""

    assertion_id: str
    numbers: tuple[int, ...]
    attempt: int


def due(connection: Connection, now: int, count_max: int) -> list[Due]:
    """What is due, oldest first."""
    query = (
        select(outbox.c.number, outbox.c.assertion_id, outbox.c.attempt)
        .where(outbox.c.due_at <= now)
        .order_by(outbox.c.number)
        .limit(count_max)
    )
    numbers: dict[str, list[int]] = {}
    attempts: dict[str, int] = {}
    for number, assertion_id, attempt in connection.execute(query):
        numbers.setdefault(assertion_id, []).append(number)
        attempts[assertion_id] = max(attempt, attempts.get(assertion_id, 0))
    return [Due(assertion_id=each, numbers=tuple(found), attempt=attempts[each]) for each, found in numbers.items()]


def settle(connection: Connection, done: Sequence[Due]) -> None:
    """Strike off what was applied; a change that came meanwhile has a row of its own and stays."""
    numbers = [{"done": number} for each in done for number in each.numbers]
    if numbers:
        connection.execute(delete(outbox).where(outbox.c.number == bindparam("done")), numbers)


def put_off(connection: Connection, failed: Mapping[str, str], tried: Sequence[Due], now: int) -> None:
    """Try these later, each with what it failed by."""
    for each in tried:
        if each.assertion_id not in failed:
            continue
        wait = BACKOFF_US << min(each.attempt, BACKOFF_DOUBLING_MAX)
        connection.execute(
            update(outbox)
            .where(outbox.c.number.in_(each.numbers))
            .values(due_at=now + wait, attempt=each.attempt + 1, error=failed[each.assertion_id])
        )


def enqueue_again(connection: Connection, ids: Sequence[str]) -> int:
    """Queue entries that were found to differ; those of assertions that are gone are not queued."""
    count = 0
    for each in ids:
        row = connection.execute(
            select(assertion.c.tenant_id, assertion.c.namespace_id).where(assertion.c.assertion_id == each)
        ).first()
        if row is not None:
            connection.execute(
                insert(outbox).values(
                    tenant_id=row.tenant_id, assertion_id=each, namespace_id=row.namespace_id, due_at=0, attempt=0
                )
            )
            count += 1
    return count


def pending_count(connection: Connection) -> int:
    """How many outbox rows are left."""
    return int(connection.scalar(select(func.count()).select_from(outbox)) or 0)
