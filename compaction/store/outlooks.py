"""What dry runs of jobs found, thread by thread."""

from typing import Any

import msgspec
from sqlalchemy import Connection, select, update

from threadmark.compaction import tables
from threadmark.db.portable import insert_new

__all__ = ["Outlook", "list_outlooks", "put_outlook"]

_column = tables.outlook.c


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """What a compaction of a thread would come to. `status` is `planned` for one that would be committed."""

    thread_id: str
    status: str
    strategy: str | None = None
    covers: tuple[int, int] | None = None
    tokens_before: int = 0
    tokens_after: int = 0
    floor_tokens: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    cost: int | None = None
    shown_ratio: float = 0.0
    totals: dict[str, dict[str, int]] = {}
    critical_dropped: int = 0
    introduced: int = 0
    rejections: tuple[tuple[str, str, str], ...] = ()
    error_code: str | None = None
    error: str | None = None


_OUTLOOK = msgspec.json.Decoder(Outlook)


def put_outlook(connection: Connection, job_id: str, thread: int, outlook: Outlook) -> None:
    """Keep what was found of the thread, in the place of what was found before a death."""
    named: dict[str, Any] = {"job_id": job_id, "thread_id": outlook.thread_id}
    found = {"thread": thread, "body": msgspec.json.encode(outlook)}
    if insert_new(connection, tables.outlook, {**named, **found}) is None:
        connection.execute(
            update(tables.outlook).where(_column.job_id == job_id, _column.thread_id == outlook.thread_id).values(found)
        )


def list_outlooks(connection: Connection, job_id: str, *, after_id: str, count_max: int) -> list[Outlook]:
    """What the job found, in the order of the threads' ids, behind one of them."""
    statement = select(_column.body).where(_column.job_id == job_id, _column.thread_id > after_id)
    rows = connection.execute(statement.order_by(_column.thread_id).limit(count_max)).scalars()
    return [_OUTLOOK.decode(body) for body in rows]
