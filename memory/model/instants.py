"""Instants: aware UTC datetimes outside, epoch microseconds inside, `FAR_US` for "until further notice"."""

from datetime import UTC, datetime, timedelta

from threadmark.memory.errors import Refused

__all__ = ["FAR_US", "from_us", "parsed", "to_us", "until"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Later than every instant: the open end of an interval. It keeps "open" an ordinary comparison on both databases.
FAR_US = 2**62
YEAR_MIN, YEAR_MAX = 1000, 9998


def to_us(instant: datetime, path: str = "instant") -> int:
    """Epoch microseconds of an aware datetime.

    Raises Refused for a naive one, and for the years at either end, which mean "no idea" and not an instant.
    """
    if instant.tzinfo is None or instant.utcoffset() is None:
        raise Refused(path, "names no instant: it has no UTC offset")
    if not YEAR_MIN <= instant.year <= YEAR_MAX:
        raise Refused(path, f"is outside the years {YEAR_MIN} to {YEAR_MAX}")
    return (instant - _EPOCH) // timedelta(microseconds=1)


def from_us(value: int) -> datetime:
    """The aware UTC datetime of epoch microseconds."""
    return _EPOCH + timedelta(microseconds=value)


def until(value: int) -> datetime | None:
    """The end of an interval; None while it is open."""
    return None if value >= FAR_US else from_us(value)


def parsed(text: str, path: str = "instant") -> datetime:
    """The instant that an ISO 8601 text with an offset names. Raises Refused."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError as error:
        raise Refused(path, "is not an ISO 8601 instant") from error
    to_us(instant, path)
    return instant.astimezone(UTC)
