"""Filters of a recall or a list: a closed set of fields, each with values; anything else is refused. Pure.

A filter never reaches an index or a statement as a key: only values do, bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from threadmark.memory.errors import FilterRefused, Refused
from threadmark.memory.model.instants import parsed, to_us
from threadmark.memory.model.provenance import Trust
from threadmark.memory.model.values import check_label
from threadmark.memory.text.identity import identity_key
from threadmark.memory.text.terms import folded

__all__ = ["FIELDS", "VALUE_COUNT_MAX", "Filter", "parse_filter"]

VALUE_COUNT_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What an answer must be. Each field: one of its values; all fields: all of them. None asks nothing."""

    kind: frozenset[str] | None = None
    subject: frozenset[str] | None = None
    attribute: frozenset[str] | None = None
    trust: frozenset[Trust] | None = None
    actor: frozenset[str] | None = None
    thread_ref: frozenset[str] | None = None
    run_ref: frozenset[str] | None = None
    confidence_min: float | None = None
    observed_from: datetime | None = None
    observed_to: datetime | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it asks nothing."""
        return all(getattr(self, each.name) is None for each in fields(self))


FIELDS = frozenset(each.name for each in fields(Filter))
_LABELS = frozenset({"kind", "subject", "attribute", "actor", "thread_ref", "run_ref"})
#: Compared as they are stored: names exactly, a speaker as people spell one when they search.
_SPELLED = {"subject": identity_key, "attribute": identity_key, "actor": folded}


def parse_filter(given: Mapping[str, Any] | None, path: str = "filter") -> Filter:
    """The filter that a JSON object names; None is no filter.

    Raises FilterRefused for an empty object, an unknown field, an empty list of values and a value of another type:
    each of them would otherwise mean "everything".
    """
    if given is None:
        return Filter()
    if not isinstance(given, Mapping):
        raise FilterRefused(path, "is not an object")
    if not given:
        raise FilterRefused(path, "is empty; leave it out to ask for everything in the scope")
    if unknown := [key for key in given if key not in FIELDS]:
        raise FilterRefused(path, f"has {len(unknown)} unknown field(s); known are {', '.join(sorted(FIELDS))}")
    return Filter(**{key: _value(key, value, f"{path}.{key}") for key, value in given.items()})


def _value(key: str, value: Any, path: str) -> Any:
    try:
        if key in _LABELS:
            labels = [check_label(each, path) for each in _several(value, path)]
            return frozenset(map(_SPELLED[key], labels) if key in _SPELLED else labels)
        if key == "trust":
            return frozenset(_trust(each, path) for each in _several(value, path))
        if key == "confidence_min":
            return _share(value, path)
        return _instant(value, path)
    except FilterRefused:
        raise
    except Refused as error:
        raise FilterRefused(error.path, error.why) from error


def _several(value: Any, path: str) -> list[Any]:
    values = value if isinstance(value, list | tuple | set | frozenset) else [value]
    if not 0 < len(values) <= VALUE_COUNT_MAX:
        raise FilterRefused(path, f"has {len(values)} values; from 1 to {VALUE_COUNT_MAX} are taken")
    return list(values)


def _trust(value: Any, path: str) -> Trust:
    try:
        return Trust(value)
    except ValueError as error:
        raise FilterRefused(path, "is no level of trust") from error


def _share(value: Any, path: str) -> float:
    if type(value) not in {int, float} or not 0 <= value <= 1:
        raise FilterRefused(path, "is not a number from 0 to 1")
    return float(value)


def _instant(value: Any, path: str) -> datetime:
    if isinstance(value, str):
        return parsed(value, path)
    if isinstance(value, datetime):
        to_us(value, path)
        return value
    raise FilterRefused(path, "is not an instant")
