"""Filters over the fields of documents: equality, and `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`. Pure.

Keys are compared here and never become a part of a statement.
"""

from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from typing import Any

from threadmark.memory.errors import FilterRefused

__all__ = ["matches"]

KEY_COUNT_MAX = 50
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
_ABSENT = object()


def matches(document: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Whether every field of the filter fits the document's. Raises FilterRefused for an empty or unknown one."""
    if not isinstance(given, Mapping) or not 0 < len(given) <= KEY_COUNT_MAX:
        raise FilterRefused("filter", f"is not an object of 1 to {KEY_COUNT_MAX} fields")
    return all(_fits(document.get(key, _ABSENT), wanted) for key, wanted in given.items())


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping) and any(str(key).startswith("$") for key in wanted):
        return all(_compares(value, operator, other) for operator, other in wanted.items())
    return _same(value, wanted)


def _compares(value: Any, operator: str, other: Any) -> bool:
    if operator == "$eq":
        return _same(value, other)
    if operator == "$ne":
        return not _same(value, other)
    if operator not in _ORDERS:
        raise FilterRefused("filter", f"has the unknown operator {operator!r}")
    comparable = (_is_number(value) and _is_number(other)) or (isinstance(value, str) and isinstance(other, str))
    return comparable and _ORDERS[operator](value, other)


def _same(value: Any, other: Any) -> bool:
    # True == 1 in Python and not in JSON.
    return isinstance(value, bool) == isinstance(other, bool) and value == other


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
