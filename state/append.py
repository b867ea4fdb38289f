"""The hot statement: append entries under a fence.

The UPDATE takes the thread's row lock with the fence and the expected head in its condition; a stale holder moves no
row and therefore inserts nothing. Its RETURNING brings the inbox counter along, so a holder learns of a cancellation
or an answer from the append that it does anyway.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

__all__ = ["ENTRY_COLUMNS", "Append", "append_batch"]

ENTRY_COLUMNS = ("thread", "seq", "branch", "run", "fence", "at", "kind", "salt", "payload", "digest")

_ADVANCE = (
    "UPDATE thread SET head_seq = ?, head_digest = ? WHERE number = ? AND fence = ? AND head_seq = ? RETURNING inbox"
)
_INSERT = (
    "INSERT INTO entry (thread, seq, branch, run, fence, at, kind, salt, payload, digest)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


@dataclass(frozen=True, slots=True)
class Append:
    """Rows to append after `expected_seq`; each row has the columns ENTRY_COLUMNS."""

    thread: int
    fence: int
    expected_seq: int
    head_seq: int
    head_digest: bytes
    rows: Sequence[tuple[Any, ...]]


def append_batch(connection: Connection, appends: Sequence[Append]) -> list[int | None]:
    """Append each in order; the inbox counter of its thread, or None where the fence or the head had moved."""
    driver: Any = connection.connection.driver_connection
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
