"""What is the matter with a database, by its own error codes: SQLSTATE of PostgreSQL, result codes of SQLite. Pure.

An error that has no condition here is about what was asked, and not about the database.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from enum import StrEnum

import psycopg
from sqlalchemy.exc import DBAPIError

__all__ = ["Condition", "condition_of"]


class Condition(StrEnum):
    """Why a database cannot do now what it was asked to do. The values end the codes of errors on the wire."""

    AWAY = "away"
    BUSY = "busy"
    DAMAGED = "damaged"
    DISK_FULL = "disk_full"
    IO_ERROR = "io_error"
    LOGIN_REFUSED = "login_refused"
    OUT_OF_MEMORY = "out_of_memory"
    OVERLOADED = "overloaded"
    QUERY_CANCELLED = "query_cancelled"
    READ_ONLY = "read_only"
    TOO_MANY_CONNECTIONS = "too_many_connections"

    @property
    def sentence(self) -> str:
        """What is the matter, to follow the name of the database."""
        return _SENTENCES[self]

    @property
    def retry_after_s(self) -> int:
        """When it is worth asking again, in seconds: some conditions pass by themselves, others need a person."""
        return _RETRY_AFTER_S[self]


_SENTENCES: Mapping[Condition, str] = {
    Condition.AWAY: "does not answer",
    Condition.BUSY: "stayed busy: a lock was not to be had",
    Condition.DAMAGED: "found its own files damaged",
    Condition.DISK_FULL: "has no disk space left",
    Condition.IO_ERROR: "cannot read or write its files",
    Condition.LOGIN_REFUSED: "refuses the login",
    Condition.OUT_OF_MEMORY: "is out of memory",
    Condition.OVERLOADED: "is out of resources",
    Condition.QUERY_CANCELLED: "cancelled the query, which took too long or was ended by an administrator",
    Condition.READ_ONLY: "takes no writes: it is a standby, or was made read-only",
    Condition.TOO_MANY_CONNECTIONS: "has no connection left",
}
_RETRY_AFTER_S: Mapping[Condition, int] = {
    Condition.AWAY: 1,
    Condition.BUSY: 1,
    Condition.DAMAGED: 60,
    Condition.DISK_FULL: 30,
    Condition.IO_ERROR: 10,
    Condition.LOGIN_REFUSED: 30,
    Condition.OUT_OF_MEMORY: 5,
    Condition.OVERLOADED: 5,
    Condition.QUERY_CANCELLED: 1,
    Condition.READ_ONLY: 5,
    Condition.TOO_MANY_CONNECTIONS: 2,
}
#: A whole code decides before its class (the first two characters) does.
_BY_SQLSTATE: Mapping[str, Condition] = {
    "08": Condition.AWAY,
    "25006": Condition.READ_ONLY,
    "25P03": Condition.AWAY,  # idle in a transaction for too long: the session was ended
    "25P04": Condition.AWAY,  # a transaction took too long: the session was ended
    "28": Condition.LOGIN_REFUSED,
    "3D000": Condition.LOGIN_REFUSED,  # no database of that name
    "40001": Condition.BUSY,
    "40003": Condition.AWAY,  # whether the statement was done is unknown
    "40P01": Condition.BUSY,
    "53": Condition.OVERLOADED,
    "53100": Condition.DISK_FULL,
    "53200": Condition.OUT_OF_MEMORY,
    "53300": Condition.TOO_MANY_CONNECTIONS,
    "55P03": Condition.BUSY,
    "57": Condition.AWAY,
    "57014": Condition.QUERY_CANCELLED,
    "58": Condition.IO_ERROR,
    "XX001": Condition.DAMAGED,
    "XX002": Condition.DAMAGED,
}
#: An extended result code decides before its primary code (the lowest byte) does.
_BY_SQLITE_CODE: Mapping[int, Condition] = {
    sqlite3.SQLITE_BUSY: Condition.BUSY,
    sqlite3.SQLITE_CANTOPEN: Condition.AWAY,
    sqlite3.SQLITE_CORRUPT: Condition.DAMAGED,
    sqlite3.SQLITE_FULL: Condition.DISK_FULL,
    sqlite3.SQLITE_INTERRUPT: Condition.QUERY_CANCELLED,
    sqlite3.SQLITE_IOERR: Condition.IO_ERROR,
    sqlite3.SQLITE_IOERR_NOMEM: Condition.OUT_OF_MEMORY,
    sqlite3.SQLITE_LOCKED: Condition.BUSY,
    sqlite3.SQLITE_NOMEM: Condition.OUT_OF_MEMORY,
    sqlite3.SQLITE_NOTADB: Condition.DAMAGED,
    sqlite3.SQLITE_PROTOCOL: Condition.BUSY,
    sqlite3.SQLITE_READONLY: Condition.READ_ONLY,
}
#: The driver keeps the SQLSTATE of a refused connection to itself and gives the server's words alone. A server that
#: speaks another language is away then, which is answered in the same way.
_REFUSED_CONNECTIONS: Mapping[str, Condition] = {
    "too many clients": Condition.TOO_MANY_CONNECTIONS,
    "too many connections": Condition.TOO_MANY_CONNECTIONS,
    "remaining connection slots": Condition.TOO_MANY_CONNECTIONS,
    "no more connections allowed": Condition.TOO_MANY_CONNECTIONS,
    "authentication failed": Condition.LOGIN_REFUSED,
    "no pg_hba.conf entry": Condition.LOGIN_REFUSED,
    "is not permitted to log in": Condition.LOGIN_REFUSED,
}
_PRIMARY_CODE = 0xFF
#: SQLite undoes the whole transaction when the disk is full, and a rollback to a savepoint then fails with this.
_LOST_SAVEPOINT = "no such savepoint"


def condition_of(error: BaseException | None) -> Condition | None:
    """What is the matter with the database that raised `error`; None: nothing, or the error is no database's."""
    if isinstance(error, DBAPIError):
        found = condition_of(error.orig)
        if found is None and _LOST_SAVEPOINT in str(error.orig):
            return next(filter(None, map(condition_of, _contexts(error))), None)
        return Condition.AWAY if found is None and error.connection_invalidated else found
    if isinstance(error, psycopg.Error):
        return _of_postgresql(error)
    if isinstance(error, sqlite3.Error):
        code: int | None = getattr(error, "sqlite_errorcode", None)  # missing where the module itself refused
        return None if code is None else _BY_SQLITE_CODE.get(code, _BY_SQLITE_CODE.get(code & _PRIMARY_CODE))
    return None


def _contexts(error: BaseException) -> Iterator[BaseException]:
    """The errors during whose handling this one was raised, the nearest first."""
    while (context := error.__context__) is not None:
        yield context
        error = context


def _of_postgresql(error: psycopg.Error) -> Condition | None:
    state = error.sqlstate
    if state is not None:
        return _BY_SQLSTATE.get(state, _BY_SQLSTATE.get(state[:2]))
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return None
    said = str(error)
    return next((each for words, each in _REFUSED_CONNECTIONS.items() if words in said), Condition.AWAY)
