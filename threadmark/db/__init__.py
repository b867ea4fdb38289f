"""What state and memory both need of a database: how long to wait for it, and what its failures mean. Knows neither."""

from typing import TYPE_CHECKING

from threadmark.lazy import lazy_exports

if TYPE_CHECKING:
    from threadmark.db.conditions import Condition, condition_of
    from threadmark.db.engine import postgresql_engine, sqlite_engine
    from threadmark.db.integers import INT_MAX, INT_MIN, INT_RANGE, keeps_int
    from threadmark.db.limits import DEFAULT_LIMITS, Limits, Purpose
    from threadmark.db.postgresql import NoAnswer, allow_until
    from threadmark.db.url import is_sqlite, normal_url
else:
    __getattr__, __dir__ = lazy_exports(__name__, __file__)

__all__ = [
    "DEFAULT_LIMITS",
    "INT_MAX",
    "INT_MIN",
    "INT_RANGE",
    "Condition",
    "Limits",
    "NoAnswer",
    "Purpose",
    "allow_until",
    "condition_of",
    "is_sqlite",
    "keeps_int",
    "normal_url",
    "postgresql_engine",
    "sqlite_engine",
]
