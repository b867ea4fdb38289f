"""Classifies database failures: unavailable, busy, or a refusal of the request. Pure."""

from threadmark.db.conditions import Condition, condition_of
from threadmark.db.errors import DatabaseAway, DatabaseClosed, OutcomeUnknown

__all__ = ["away", "is_away", "is_outage", "is_passing"]

#: Conditions that usually pass quickly or with a new connection: worth a retry while the caller waits.
_PASSING = frozenset({Condition.AWAY, Condition.BUSY, Condition.TOO_MANY_CONNECTIONS})


def away(error: Exception, *, database: str = "state") -> DatabaseAway:
    """The DatabaseAway for a driver's error, with its condition."""
    refusal = DatabaseAway(condition_of(error) or Condition.AWAY, database=database)
    refusal.__cause__ = error
    return refusal


def is_away(error: BaseException) -> bool:
    """Whether the database was unreachable or the connection was lost; a commit may or may not have succeeded."""
    return isinstance(error, DatabaseAway | OutcomeUnknown) or condition_of(error) is Condition.AWAY


def is_outage(error: BaseException) -> bool:
    """Whether the database itself failed (away, full, overloaded, closed), rather than refused the request."""
    return isinstance(error, DatabaseAway | OutcomeUnknown | DatabaseClosed) or condition_of(error) is not None


def is_passing(error: BaseException) -> bool:
    """Whether an immediate retry may succeed: the database is away, busy or crowded, but has not refused."""
    return is_away(error) or condition_of(error) in _PASSING
