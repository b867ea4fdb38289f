"""The hot path: append entries under a fence, spoken to the driver itself.

The UPDATE takes the thread's row lock with the fence and the expected head in its condition; a stale holder moves no
row and therefore inserts nothing. (`INSERT … SELECT … WHERE fence = …` alone would read the old fence from its snapshot
while a takeover commits.) Its RETURNING brings the inbox counter along, so a holder learns of a cancellation or an
answer from the append that it does anyway.

A run's end travels with its last append: the same UPDATE lets the thread go, and another one ends the run.

On PostgreSQL a batch is one statement and one round trip; on SQLite a few prepared statements in one transaction.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import Connection, RootTransaction

from threadmark.state.append import append_statements as sql
from threadmark.state.append.binary_arrays import BigInts, Blobs, Ints, Texts

__all__ = ["OVERTAKEN", "Append", "Appended", "Outcome", "RunEnd", "append_batch", "begin_units", "commit_appends"]

#: What `Append.rows` and `RunEnd` are made of.
_ROW_COLUMNS: tuple[Callable[[Iterable[Any]], Any], ...] = (
    BigInts,
    BigInts,
    Ints,
    BigInts,
    BigInts,
    BigInts,
    Texts,
    Blobs,
    Blobs,
    Blobs,
)
_END_COLUMNS: tuple[Callable[[Iterable[Any]], Any], ...] = (BigInts, Texts, Texts, Texts, Texts, Texts, BigInts)
_NO_END = (None,) * len(_END_COLUMNS)
#: What an append comes to whose run may not end: it was asked to roll back.
OVERTAKEN: Final = "overtaken"


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run settles, and what its thread is then; while another run of it is pending, the thread stays busy."""

    run: int
    status: str
    reason: str | None
    error: str | None
    thread_status: str
    thread_error: str | None
    now_us: int

    @property
    def values(self) -> tuple[Any, ...]:
        """All of it, in order."""
        return (
            self.run,
            self.status,
            self.reason,
            self.error,
            self.thread_status,
            self.thread_error,
            self.now_us,
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
    end: RunEnd | None = None


@dataclass(frozen=True, slots=True)
class Appended:
    """The thread's inbox counter; `repeated` if the append was there already (its commit was done, its answer lost)."""

    inbox: int
    repeated: bool = False


#: None where the fence or the head had moved.
Outcome = Appended | Literal["overtaken"] | None


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
    if not driver.autocommit:
        driver.autocommit = True
    return _append_postgresql(driver, appends)


def begin_units(connection: Connection) -> RootTransaction:
    """A transaction for units, whatever was committed on the connection before."""
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name != "sqlite" and driver.autocommit:
        driver.autocommit = False
    return connection.begin()


def _append_sqlite(driver: Any, appends: Sequence[Append]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    cursor = driver.cursor()
    for each in appends:
        where = (each.thread, each.fence, each.expected_seq)
        if each.end is None:
            moved = cursor.execute(sql.ADVANCE, (each.head_seq, each.head_digest, *where)).fetchone()
        else:
            end = each.end
            values = (each.head_seq, each.head_digest, end.thread_status, end.thread_error, end.now_us, end.run)
            moved = cursor.execute(sql.ADVANCE_AND_END, (*values, *where)).fetchone()
        if moved is not None:
            cursor.executemany(sql.INSERT, each.rows)
            if each.end is not None:
                end = each.end
                cursor.execute(sql.END, (end.status, end.reason, end.error, end.now_us, end.run))
            outcomes.append(Appended(moved[0]))
        else:
            outcomes.append(_not_moved(cursor, sql.LANDED_SQLITE, sql.STANDS_SQLITE, each))
    cursor.close()
    return outcomes


def _append_postgresql(driver: Any, appends: Sequence[Append]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    with driver.cursor() as cursor:
        for group in _one_of_each_thread(appends):
            if any(each.end is not None for each in group):
                moved = _append_and_end(driver, cursor, group)
            else:
                cursor.execute(sql.ADVANCE_AND_INSERT, [*_heads(group), *_rows(group)])
                moved = dict(cursor.fetchall())
            for each in group:
                inbox = moved.get(each.thread)
                outcomes.append(
                    _not_moved(cursor, sql.LANDED_POSTGRESQL, sql.STANDS_POSTGRESQL, each)
                    if inbox is None
                    else Appended(inbox)
                )
    return outcomes


def _append_and_end(driver: Any, cursor: Any, group: Sequence[Append]) -> dict[int, int]:
    """The threads that moved, with their inbox counters; some of their runs end.

    The locks come first, in a statement of their own and the same round trip: what the second one sees of other runs
    and of cancellations is then younger than the locks, and nobody changes it before the commit.
    """
    ending = BigInts([each.thread for each in group if each.end is not None])
    with driver.pipeline():
        driver.execute(sql.LOCK, [ending])
        cursor.execute(sql.ADVANCE_INSERT_AND_END, [*_heads(group), *_ends(group), *_rows(group)])
    return dict(cursor.fetchall())


def _heads(group: Sequence[Append]) -> list[Any]:
    return [
        BigInts([each.thread for each in group]),
        BigInts([each.fence for each in group]),
        BigInts([each.expected_seq for each in group]),
        BigInts([each.head_seq for each in group]),
        Blobs([each.head_digest for each in group]),
    ]


def _ends(group: Sequence[Append]) -> list[Any]:
    ends = [_NO_END if each.end is None else each.end.values for each in group]
    return [kind(column) for kind, column in zip(_END_COLUMNS, zip(*ends, strict=True), strict=True)]


def _rows(group: Sequence[Append]) -> list[Any]:
    columns = list(zip(*(row for each in group for row in each.rows), strict=True)) or [()] * len(_ROW_COLUMNS)
    return [kind(column) for kind, column in zip(_ROW_COLUMNS, columns, strict=True)]


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


def _not_moved(cursor: Any, landed: str, stands: str, append: Append) -> Outcome:
    """Why an append moved nothing: it is there already, its run may not end, or its holder is stale."""
    if append.rows:
        cursor.execute(landed, (append.thread, append.head_seq, append.head_digest))
        row = cursor.fetchone()
        if row is not None:
            return Appended(row[0], repeated=True)
    if append.end is None:
        return None
    cursor.execute(stands, (append.thread, append.fence, append.expected_seq))
    return None if cursor.fetchone() is None else OVERTAKEN
