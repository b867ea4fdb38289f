"""Threads by number, for packages with their own rows about threads."""

from sqlalchemy import Connection, select

from threadmark.state import tables
from threadmark.state.records import Thread, thread_of

__all__ = ["is_overwritten", "lock_number", "thread_numbers_of"]


def thread_numbers_of(connection: Connection, number: int) -> Thread | None:
    """The thread of any tenant with this number."""
    row = connection.execute(select(tables.thread).where(tables.thread.c.number == number)).one_or_none()
    return None if row is None else thread_of(row)


def lock_number(connection: Connection, number: int) -> Thread | None:
    """The thread with this number, locked until the end of the unit, so that no worker appends to it meanwhile."""
    statement = select(tables.thread).where(tables.thread.c.number == number).with_for_update()
    row = connection.execute(statement).one_or_none()
    return None if row is None else thread_of(row)


def is_overwritten(connection: Connection, number: int, after_seq: int) -> bool:
    """Whether messages were written from outside after `after_seq`; they may have replaced older ones."""
    entry = tables.entry.c
    found = select(entry.seq).where(entry.thread == number, entry.seq > after_seq, entry.kind == "state_updated")
    return connection.execute(found.limit(1)).first() is not None
