"""What a failure of the database means: it was away, it was busy, or it refused. Pure."""

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from state.errors import DatabaseAway, DatabaseClosed, OutcomeUnknown

__all__ = ["is_away", "is_outage", "is_passing"]

#: What the PostgreSQL driver raises when the server stops, starts, or the socket breaks.
_AWAY = frozenset(
    {
        "AdminShutdown",
        "CannotConnectNow",
        "ConnectionFailure",
        "ConnectionTimeout",
        "CrashShutdown",
        "IdleInTransactionSessionTimeout",
        "OperationalError",
        "TooManyConnections",
    }
)
#: What it raises when two transactions were in each other's way: the one that it chose was undone, and may come again.
_BUSY = frozenset({"DeadlockDetected", "SerializationFailure", "LockNotAvailable"})


def is_away(error: BaseException) -> bool:
    """Whether the database could not be reached, or was taken in the middle; a commit may have been done or not."""
    if isinstance(error, (DatabaseAway, OutcomeUnknown)):
        return True
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or _is_one_of(error.orig, _AWAY)
    return _is_one_of(error, _AWAY)


def is_outage(error: BaseException) -> bool:
    """Whether it was the database that failed (away, full, overloaded, closed), and not what was asked of it."""
    return isinstance(error, (OperationalError, InterfaceError, DatabaseClosed)) or is_passing(error)


def is_passing(error: BaseException) -> bool:
    """Whether the same work may succeed when it is tried again as it is: away or busy, and not refused."""
    return is_away(error) or _is_one_of(error.orig if isinstance(error, DBAPIError) else error, _BUSY)


def _is_one_of(error: BaseException | None, names: frozenset[str]) -> bool:
    kind = type(error)
    if kind.__module__ == "sqlite3":
        return "locked" in str(error)
    return kind.__module__.startswith("psycopg") and kind.__name__ in names
