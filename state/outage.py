"""What a failure of the database means: it was away, it was busy, or it refused. Pure."""

from threadmark.db import Condition, condition_of
from threadmark.state.errors import DatabaseAway, DatabaseClosed, OutcomeUnknown

__all__ = ["away", "is_away", "is_outage", "is_passing"]

#: What is gone in a moment, or with another connection: worth another attempt while the caller waits.
_PASSING = frozenset({Condition.AWAY, Condition.BUSY, Condition.TOO_MANY_CONNECTIONS})


def away(error: Exception) -> DatabaseAway:
    """The refusal for an error of the driver that says what is the matter with the database."""
    refusal = DatabaseAway(condition_of(error) or Condition.AWAY)
    refusal.__cause__ = error
    return refusal


def is_away(error: BaseException) -> bool:
    """Whether the database could not be reached, or was taken in the middle; a commit may have been done or not."""
    return isinstance(error, DatabaseAway | OutcomeUnknown) or condition_of(error) is Condition.AWAY


def is_outage(error: BaseException) -> bool:
    """Whether it was the database that failed (away, full, overloaded, closed), and not what was asked of it."""
    return isinstance(error, DatabaseAway | OutcomeUnknown | DatabaseClosed) or condition_of(error) is not None


def is_passing(error: BaseException) -> bool:
    """Whether the same work may succeed when it is tried again at once: away, busy or crowded, and not refused."""
    return is_away(error) or condition_of(error) in _PASSING
