"""The hot path: append entries under a fence, through the driver directly.

The UPDATE takes the thread's row lock and checks the fence and the expected head in its condition; a stale holder
updates no row and therefore inserts nothing. (`INSERT … SELECT … WHERE fence = …` alone would read the old fence from
its snapshot while a takeover commits.) Its RETURNING includes the inbox counter, so a holder learns of a cancellation
or an answer from an append that it makes anyway.

A run can end with its last append: the same UPDATE releases the thread, and a second one ends the run.

On PostgreSQL a batch is one statement and one round trip; on SQLite it is a few prepared statements in one transaction.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import Connection

from threadmark.state.batches import append_statements as sql
from threadmark.state.batches.binary_arrays import BigInts, Blobs, Ints, Texts
from threadmark.state.runs.run_outcome import RunOutcome

__all__ = ["OVERTAKEN", "Append", "AppendBatches", "Appended", "Outcome", "RunEnd", "append_batch", "commit_appends"]

#: The types of the columns of `Append.rows` and `RunEnd`.
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
#: The outcome of an append whose run may not end because a rollback was requested.
OVERTAKEN: Final = "overtaken"


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run settles, and the status of its thread afterwards, which stays busy while another run is pending."""

    run: int
    outcome: RunOutcome
    now_us: int

    @property
    def values(self) -> tuple[Any, ...]:
        """What the statements of PostgreSQL set, in their order."""
        to = self.outcome
        return (self.run, to.status, to.reason, to.error, to.thread_status, to.thread_error, self.now_us)


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
    """The thread's inbox counter; `repeated` if the append was already there, from a commit whose reply was lost."""

    inbox: int
    repeated: bool = False


#: None if the fence or the head had moved.
Outcome = Appended | Literal["overtaken"] | None


def append_batch(connection: Connection, appends: Sequence[Append]) -> list[Outcome]:
    """Append each in order, inside the connection's transaction.

    None for each whose fence or head had moved.
    """
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        return _append_sqlite(driver, appends)
    return _append_postgresql(driver, appends)


def commit_appends(connection: Connection, appends: Sequence[Append]) -> list[Outcome]:
    """`append_batch` in its own transaction, without SQLAlchemy's overhead, which costs as much as the commit."""
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
    # Outside a transaction block a statement commits by itself, which saves the round trips of BEGIN and COMMIT.
    if not driver.autocommit:
        driver.autocommit = True
    return _append_postgresql(driver, appends)


class AppendBatches:
    """Appends of many threads in one statement (see `threadmark.db.execution.writer`)."""

    def apply(self, connection: Connection, works: Sequence[Append]) -> list[Outcome]:
        """Append inside the connection's transaction."""
        return append_batch(connection, works)

    def commit(self, connection: Connection, works: Sequence[Append]) -> list[Outcome]:
        """Append in a transaction of its own."""
        return commit_appends(connection, works)


def _append_sqlite(driver: Any, appends: Sequence[Append]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    cursor = driver.cursor()
    for each in appends:
        where = (each.thread, each.fence, each.expected_seq)
        if each.end is None:
            moved = cursor.execute(sql.ADVANCE, (each.head_seq, each.head_digest, *where)).fetchone()
        else:
            end, to = each.end, each.end.outcome
            values = (each.head_seq, each.head_digest, to.thread_status, to.thread_error, end.now_us, end.run)
            moved = cursor.execute(sql.ADVANCE_AND_END, (*values, *where)).fetchone()
        if moved is not None:
            cursor.executemany(sql.INSERT, each.rows)
            if each.end is not None:
                end, to = each.end, each.end.outcome
                cursor.execute(sql.END, (to.status, to.reason, to.error, end.now_us, end.run))
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
    """The inbox counters of the threads that moved; some of their runs end.

    The locks are taken first, in a separate statement of the same round trip. The second statement's snapshot is then
    newer than the locks, so what it sees of other runs and of cancellations cannot change before the commit.
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
    """Cut the batch where a thread appears a second time: one UPDATE can move a row only once."""
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
    """Why an append moved nothing: it is already there, its run may not end, or its holder is stale."""
    if append.rows:
        cursor.execute(landed, (append.thread, append.head_seq, append.head_digest))
        row = cursor.fetchone()
        if row is not None:
            return Appended(row[0], repeated=True)
    if append.end is None:
        return None
    cursor.execute(stands, (append.thread, append.fence, append.expected_seq))
    return None if cursor.fetchone() is None else OVERTAKEN
