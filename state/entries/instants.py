"""Instants: aware UTC datetimes outside, epoch microseconds inside."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

__all__ = ["FAR_US", "database_now_us", "from_us", "to_us"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
#: Later than any real instant: an item due then waits until its due time is changed.
FAR_US = 2**62


def to_us(instant: datetime) -> int:
    """Epoch microseconds of an aware datetime. Raises ValueError for a naive one."""
    if instant.tzinfo is None:
        raise ValueError("a naive datetime does not identify an instant; give it a time zone")
    return (instant - _EPOCH) // _MICROSECOND


def from_us(value: int) -> datetime:
    """The aware UTC datetime of epoch microseconds."""
    return _EPOCH + timedelta(microseconds=value)


class database_now_us(FunctionElement[int]):
    """The database's own clock, in epoch microseconds: leases are measured by no other clock."""

    type = BigInteger()
    inherit_cache = True


@compiles(database_now_us, "sqlite")
def _sqlite_now(_element: Any, _compiler: Any, **_: Any) -> str:
    return "CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER)"


@compiles(database_now_us, "postgresql")
def _postgresql_now(_element: Any, _compiler: Any, **_: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"
