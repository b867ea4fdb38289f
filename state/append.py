"""The hot path: append entries under a fence, spoken to the driver itself.

The UPDATE takes the thread's row lock with the fence and the expected head in its condition; a stale holder moves no
row and therefore inserts nothing. (`INSERT … SELECT … WHERE fence = …` alone would read the old fence from its snapshot
while a takeover commits.) Its RETURNING brings the inbox counter along, so a holder learns of a cancellation or an
answer from the append that it does anyway.

On PostgreSQL a batch is one statement and one round trip; on SQLite a few prepared statements in one transaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

__all__ = ["Append", "Appended", "Outcome", "append_batch", "commit_appends"]

_ADVANCE = (
    "UPDATE thread SET head_seq = ?, head_digest = ? WHERE number = ? AND fence = ? AND head_seq = ? RETURNING inbox"
)
_INSERT = (
    "INSERT INTO entry (thread, seq, branch, run, fence, at, kind, salt, payload, digest)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_ADVANCE_AND_INSERT = """
WITH moved AS (
    UPDATE thread AS t SET head_seq = a.head_seq, head_digest = a.head_digest
    FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bytea[])
        AS a (number, fence, expected_seq, head_seq, head_digest)
    WHERE t.number = a.number AND t.fence = a.fence AND t.head_seq = a.expected_seq
    RETURNING t.number, t.inbox
), inserted AS (
    INSERT INTO entry (thread, seq, branch, run, fence, at, kind, salt, payload, digest)
    SELECT r.* FROM unnest(%s::bigint[], %s::bigint[], %s::integer[], %s::bigint[], %s::bigint[], %s::bigint[],
                           %s::text[], %s::bytea[], %s::bytea[], %s::bytea[])
        AS r (thread, seq, branch, run, fence, at, kind, salt, payload, digest)
    JOIN moved ON moved.number = r.thread
)
SELECT number, inbox FROM moved
"""
_LANDED_SQLITE = (
    "SELECT thread.inbox FROM thread JOIN entry ON entry.thread = thread.number"
    " WHERE thread.number = ? AND entry.seq = ? AND entry.digest = ?"
)
_LANDED_POSTGRESQL = (
    "SELECT thread.inbox FROM thread JOIN entry ON entry.thread = thread.number"
    " WHERE thread.number = %s AND entry.seq = %s AND entry.digest = %s"
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


@dataclass(frozen=True, slots=True)
class Appended:
    """The thread's inbox counter; `repeated` if the append was there already (its commit was done, its answer lost)."""

    inbox: int
    repeated: bool = False


Outcome = Appended | None


def append_batch(connection: Connection, appends: Sequence[Append]) -> list[Outcome]:
    """Append each in order, inside the connection's transaction.

    None where the fence or the head had moved.
    """
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        return _append_sqlite(driver, appends)
    return _append_postgresql(driver, appends)


def commit_appends(connection: Connection, appends: Sequence[Append]) -> list[Outcome]:
    """`append_batch` in a transaction of its own, without the toolkit's ceremony, which costs as much as the commit."""
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        driver.execute("BEGIN IMMEDIATE")
        try:
            outcomes = _append_sqlite(driver, appends)
            driver.execute("COMMIT")
        except BaseException:
            if driver.in_transaction:
                driver.execute("ROLLBACK")
            raise
        return outcomes
    # Outside a transaction block a statement commits by itself: no BEGIN and no COMMIT to wait for.
    driver.autocommit = True
    try:
        return _append_postgresql(driver, appends)
    finally:
        if not driver.closed:
            driver.autocommit = False


def _append_sqlite(driver: Any, appends: Sequence[Append]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    cursor = driver.cursor()
    for each in appends:
        moved = cursor.execute(
            _ADVANCE, (each.head_seq, each.head_digest, each.thread, each.fence, each.expected_seq)
        ).fetchone()
        if moved is not None:
            cursor.executemany(_INSERT, each.rows)
            outcomes.append(Appended(moved[0]))
        else:
            outcomes.append(_landed(cursor, _LANDED_SQLITE, each))
    cursor.close()
    return outcomes


def _append_postgresql(driver: Any, appends: Sequence[Append]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    with driver.cursor() as cursor:
        for group in _one_of_each_thread(appends):
            heads = list(
                zip(*((a.thread, a.fence, a.expected_seq, a.head_seq, a.head_digest) for a in group), strict=True)
            )
            rows = list(zip(*(row for each in group for row in each.rows), strict=True)) or [()] * 10
            cursor.execute(_ADVANCE_AND_INSERT, [list(column) for column in (*heads, *rows)])
            moved = dict(cursor.fetchall())
            for each in group:
                inbox = moved.get(each.thread)
                outcomes.append(_landed(cursor, _LANDED_POSTGRESQL, each) if inbox is None else Appended(inbox))
    return outcomes


def _columns(appends: Sequence[Append]) -> list[list[Any]]:
    heads = ((each.thread, each.fence, each.expected_seq, each.head_seq, each.head_digest) for each in appends)
    rows = [row for each in appends for row in each.rows]
    columns = [*zip(*heads, strict=True), *(zip(*rows, strict=True) if rows else [()] * 10)]
    return [list(column) for column in columns]


def _one_of_each_thread(appends: Sequence[Append]) -> list[list[Append]]:
    """Cut the batch where a thread comes a second time: one UPDATE moves a row once."""
    groups: list[list[Append]] = []
    seen: set[int] = set()
    for each in appends:
        if not groups or each.thread in seen:
            groups.append([])
            seen = set()
        groups[-1].append(each)
        seen.add(each.thread)
    return groups


def _landed(cursor: Any, statement: str, append: Append) -> Outcome:
    if not append.rows:
        return None
    cursor.execute(statement, (append.thread, append.head_seq, append.head_digest))
    row = cursor.fetchone()
    return None if row is None else Appended(row[0], repeated=True)
