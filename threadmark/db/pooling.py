"""A pooler between this process and PostgreSQL: one that keeps sessions is fine, one that does not is refused.

In transaction mode every transaction may run in another session: locks that show a worker alive would not last,
settings would leak, and prepared statements would be missing. In statement mode there is no transaction at all.
"""

import psycopg
from psycopg.errors import ProtocolViolation
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import OperationalError

from threadmark.user_error import UserError

__all__ = ["SessionsNotKept", "is_without_transactions", "refuse_transaction_pooling"]

#: Each round finds a pooler that does not keep sessions out, unless its other clients take the sessions in between.
ROUND_COUNT = 8
_PID = "SELECT pg_backend_pid()"


class SessionsNotKept(UserError, RuntimeError):
    """The address leads to a pooler in transaction mode; nothing was started. `which`: `state` or `memory`."""

    def __init__(self, which: str = "state") -> None:
        super().__init__(
            f"the {which} database answers through a pooler that does not keep sessions (PgBouncer in transaction or"
            f" statement mode); point THREADMARK_{which.upper()}_DATABASE_URL at PostgreSQL itself or at a pool in"
            " session mode"
        )


def refuse_transaction_pooling(engine: Engine, which: str = "state") -> None:
    """Raise SessionsNotKept, for the database `which`, where sessions are not kept. Blocks; does nothing on SQLite."""
    if engine.dialect.name == "sqlite":
        return
    try:
        _refuse(engine, which)
    except OperationalError as error:
        if is_without_transactions(error):
            raise SessionsNotKept(which) from error
        raise


def is_without_transactions(error: OperationalError) -> bool:
    """Whether it is the error of a pooler in statement mode at the beginning of a transaction."""
    return isinstance(error.orig, ProtocolViolation)


def _refuse(engine: Engine, which: str) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as one:
        if _is_direct(one):
            return
        with engine.connect() as other:
            for _ in range(ROUND_COUNT):
                mine = _pid(one)
                theirs = _pid(other)  # in a transaction, which keeps its session from others until the rollback
                if mine == theirs or _pid(one) != mine:
                    raise SessionsNotKept(which)
                other.rollback()


def _is_direct(connection: Connection) -> bool:
    """Whether the server itself answered the connection: a pooler gives a process number of its own."""
    driver = connection.connection.driver_connection
    if not isinstance(driver, psycopg.Connection):
        raise TypeError(f"a connection of {type(driver).__name__} is none of psycopg")
    return driver.info.backend_pid == _pid(connection)


def _pid(connection: Connection) -> int:
    return int(connection.execute(text(_PID)).scalar_one())
