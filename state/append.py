"""The hot path: append entries under a fence, spoken to the driver itself.

The UPDATE takes the thread's row lock with the fence and the expected head in its condition; a stale holder moves no
row and therefore inserts nothing. Its RETURNING brings the inbox counter along, so a holder learns of a cancellation
or an answer from the append that it does anyway.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

__all__ = ["Append", "append_batch", "commit_appends"]

_ADVANCE = (
    "UPDATE thread SET head_seq = ?, head_digest = ? WHERE number = ? AND fence = ? AND head_seq = ? RETURNING inbox"
)
_INSERT = (
    "INSERT INTO entry (thread, seq, branch, run, fence, at, kind, salt, payload, digest)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


@dataclass(frozen=True, slots=True)
class Append:
    """Rows to append after `expected_seq`: (thread, seq, branch, run, fence, at, kind, salt, payload, digest) each."""

    thread: int
    fence: int
    expected_seq: int
    head_seq: int
    head_digest: bytes
    rows: Sequence[tuple[Any, ...]]


def append_batch(connection: Connection, appends: Sequence[Append]) -> list[int | None]:
    """Append each in order, inside the connection's transaction.

    Returns the inbox counter of each thread, or None where the fence or the head had moved.
    """
    return _append(connection.connection.driver_connection, appends)


def commit_appends(connection: Connection, appends: Sequence[Append]) -> list[int | None]:
    """`append_batch` in a transaction of its own, without the toolkit's ceremony, which costs as much as the commit."""
    driver: Any = connection.connection.driver_connection
    driver.execute("BEGIN IMMEDIATE")
    try:
        outcomes = _append(driver, appends)
        driver.execute("COMMIT")
    except BaseException:
        if driver.in_transaction:
            driver.execute("ROLLBACK")
        raise
    return outcomes


def _append(driver: Any, appends: Sequence[Append]) -> list[int | None]:
    outcomes: list[int | None] = []
    cursor = driver.cursor()
    for each in appends:
        moved = cursor.execute(
            _ADVANCE, (each.head_seq, each.head_digest, each.thread, each.fence, each.expected_seq)
        ).fetchone()
        if moved is not None:
            cursor.executemany(_INSERT, each.rows)
        outcomes.append(None if moved is None else moved[0])
    cursor.close()
    return outcomes
