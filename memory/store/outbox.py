"""The outbox: which index entries are behind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, func, insert, literal, select, update

from threadmark.memory.store.job_tables import outbox
from threadmark.memory.store.statements import chunks
from threadmark.memory.store.tables import assertion

__all__ = ["Due", "due", "enqueue_again", "pending_count", "put_off", "settle"]

#: The wait after a failed attempt, doubled each time.
BACKOFF_US, BACKOFF_DOUBLING_MAX = 1_000_000, 9
_QUEUE = insert(outbox).from_select(
    ["tenant_id", "entry", "namespace_id", "due_at", "attempt"],
    select(assertion.c.tenant_id, assertion.c.number, assertion.c.namespace_id, literal(0), literal(0)).where(
        assertion.c.number.in_(bindparam("numbers", expanding=True))
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """An entry that is behind, the outbox rows that say so, and how often it failed."""

    entry: int
    numbers: tuple[int, ...]
    attempt: int


def due(connection: Connection, now: int, count_max: int) -> list[Due]:
    """What is due, oldest first."""
    query = (
        select(outbox.c.number, outbox.c.entry, outbox.c.attempt)
        .where(outbox.c.due_at <= now)
        .order_by(outbox.c.number)
        .limit(count_max)
    )
    numbers: dict[int, list[int]] = {}
    attempts: dict[int, int] = {}
    for number, entry, attempt in connection.execute(query):
        numbers.setdefault(entry, []).append(number)
        attempts[entry] = max(attempt, attempts.get(entry, 0))
    return [Due(entry=each, numbers=tuple(found), attempt=attempts[each]) for each, found in numbers.items()]


def settle(connection: Connection, done: Sequence[Due]) -> None:
    """Strike off what was applied; a change that came meanwhile has a row of its own and stays."""
    numbers = [{"done": number} for each in done for number in each.numbers]
    if numbers:
        connection.execute(delete(outbox).where(outbox.c.number == bindparam("done")), numbers)


def put_off(connection: Connection, failed: Mapping[int, str], tried: Sequence[Due], now: int) -> None:
    """Try these later, each with what it failed by."""
    for each in tried:
        if each.entry not in failed:
            continue
        wait = BACKOFF_US << min(each.attempt, BACKOFF_DOUBLING_MAX)
        connection.execute(
            update(outbox)
            .where(outbox.c.number.in_(each.numbers))
            .values(due_at=now + wait, attempt=each.attempt + 1, error=failed[each.entry])
        )


def enqueue_again(connection: Connection, numbers: Sequence[int]) -> None:
    """Queue entries that were found to differ; those of assertions that are gone are not queued."""
    for part in chunks(numbers):
        connection.execute(_QUEUE, {"numbers": part})


def pending_count(connection: Connection) -> int:
    """How many outbox rows are left."""
    return int(connection.scalar(select(func.count()).select_from(outbox)) or 0)
