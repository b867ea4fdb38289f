"""Admin reads of a journal: its stored entries with digests, and the names behind numbers."""

from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Connection, select

from threadmark.state import statements, tables
from threadmark.state.entries.ids import RunId
from threadmark.state.records import Run, Wait, run_of, wait_of

__all__ = ["AskedWait", "Line", "list_open_waits", "read_lines", "run_by_number", "run_names"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One entry as stored. With `is_erased`, `payload` is what the erasure left of it, or None."""

    seq: int
    branch: int
    run_id: RunId | None
    fence: int
    at_us: int  #: epoch microseconds
    kind: str
    payload: dict[str, Any] | None
    is_erased: bool
    digest: bytes


def read_lines(connection: Connection, thread: int, *, after_seq: int, before_seq: int, count_max: int) -> list[Line]:
    """Entries of all branches with a seq between the two bounds, in order; at most `count_max`."""
    entry = tables.entry.c
    rows = connection.execute(
        select(
            entry.seq,
            entry.branch,
            tables.run.c.run_id,
            entry.fence,
            entry.at,
            entry.kind,
            entry.payload,
            entry.erased,
            entry.digest,
        )
        .join(tables.run, tables.run.c.number == entry.run, isouter=True)
        .where(entry.thread == thread, entry.seq > after_seq, entry.seq < before_seq)
        .order_by(entry.seq)
        .limit(count_max)
    )
    return [
        Line(
            seq=row.seq,
            branch=row.branch,
            run_id=None if row.run_id is None else RunId(row.run_id),
            fence=row.fence,
            at_us=row.at,
            kind=row.kind,
            payload=None if row.payload is None else msgspec.json.decode(row.payload),
            is_erased=row.erased is not None,
            digest=row.digest,
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedWait:
    """A question, with the assistant and the route of the run that asked it."""

    wait: Wait
    assistant: str
    route: str


def list_open_waits(connection: Connection, *, count_max: int, thread: int | None = None) -> list[AskedWait]:
    """The open questions of all tenants, or of one thread; the oldest first."""
    statement = (
        select(tables.wait, tables.thread.c.thread_id, tables.run.c.assistant, tables.run.c.route)
        .join(tables.thread, tables.thread.c.number == tables.wait.c.thread)
        .join(tables.run, tables.run.c.number == tables.wait.c.run)
        .where(tables.wait.c.status == "open")
        .order_by(tables.wait.c.opened_at, tables.wait.c.wait_id)
        .limit(count_max)
    )
    if thread is not None:
        statement = statement.where(tables.wait.c.thread == thread)
    return [
        AskedWait(wait=wait_of(row), assistant=row.assistant, route=row.route) for row in connection.execute(statement)
    ]


def run_names(connection: Connection, thread: int) -> dict[int, RunId]:
    """The id of every run of the thread by number, including rolled-back and deleted runs."""
    rows = connection.execute(select(tables.run.c.number, tables.run.c.run_id).where(tables.run.c.thread == thread))
    return {row.number: RunId(row.run_id) for row in rows}


def run_by_number(connection: Connection, number: int) -> Run:
    """The run with this number, even if it was rolled back or deleted."""
    return run_of(connection.execute(statements.RUN, {"run": number}).one())
