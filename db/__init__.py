"""What state and memory both need of a database: how long to wait for it, and what its failures mean. Knows neither."""

from db.conditions import Condition, condition_of
from db.engine import postgresql_engine, sqlite_engine
from db.limits import DEFAULT_LIMITS, Limits, Purpose
from db.postgresql import NoAnswer, allow_until
from db.url import is_sqlite, normal_url

__all__ = [
    "DEFAULT_LIMITS",
    "Condition",
    "Limits",
    "NoAnswer",
    "Purpose",
    "allow_until",
    "condition_of",
    "is_sqlite",
    "normal_url",
    "postgresql_engine",
    "sqlite_engine",
]
