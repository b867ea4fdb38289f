"""Whether a value is as a JSON schema says, for the keywords that our document uses; another keyword is an error."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

__all__ = ["faults"]

_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_BOUNDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "minimum": lambda value, bound: not _is_number(value) or value >= bound,
    "maximum": lambda value, bound: not _is_number(value) or value <= bound,
    "exclusiveMinimum": lambda value, bound: not _is_number(value) or value > bound,
    "exclusiveMaximum": lambda value, bound: not _is_number(value) or value < bound,
    "minLength": lambda value, bound: not isinstance(value, str) or len(value) >= bound,
    "maxLength": lambda value, bound: not isinstance(value, str) or len(value) <= bound,
    "pattern": lambda value, bound: not isinstance(value, str) or re.search(bound, value) is not None,
    "minItems": lambda value, bound: not isinstance(value, list) or len(value) >= bound,
    "maxItems": lambda value, bound: not isinstance(value, list) or len(value) <= bound,
    "minProperties": lambda value, bound: not isinstance(value, dict) or len(value) >= bound,
    "maxProperties": lambda value, bound: not isinstance(value, dict) or len(value) <= bound,
    "enum": lambda value, bound: value in bound,
    "const": lambda value, bound: value == bound,
    "type": lambda value, bound: _TYPES[bound](value),
    "format": lambda value, bound: not isinstance(value, str) or _has_format(value, bound),
}
_SAID_OTHERWISE = {"title", "description", "default", "examples"}
_NESTED = {"$ref", "anyOf", "items", "properties", "required", "additionalProperties"}


def faults(
    value: Any, schema: Mapping[str, Any], named: Mapping[str, Any], path: str = "$", *, closed: bool = False
) -> Iterator[str]:
    """What is wrong with the value, a sentence each, beginning with the place.

    `named` are the schemas that `$ref`s name. If `closed`, an object has no members beside its `properties`.
    """
    assert schema.keys() <= _BOUNDS.keys() | _SAID_OTHERWISE | _NESTED, f"{path}: unknown keywords in {schema}"
    for keyword, bound in schema.items():
        if keyword in _BOUNDS and not _BOUNDS[keyword](value, bound):
            yield f"{path}: {str(value)[:100]!r} is not of {keyword} {bound}"
    if "$ref" in schema:
        yield from faults(value, named[schema["$ref"].rpartition("/")[2]], named, path, closed=closed)
    if "anyOf" in schema:
        tried = [list(faults(value, each, named, path, closed=closed)) for each in schema["anyOf"]]
        if all(tried):
            yield min(tried, key=len)[0] if len(tried) == 1 else f"{path}: fits none of {tried}"
    if isinstance(value, list) and "items" in schema:
        for at, item in enumerate(value):
            yield from faults(item, schema["items"], named, f"{path}[{at}]", closed=closed)
    if isinstance(value, dict):
        yield from _of_members(value, schema, named, path, closed=closed)


def _of_members(
    value: Mapping[str, Any], schema: Mapping[str, Any], named: Mapping[str, Any], path: str, *, closed: bool
) -> Iterator[str]:
    own = schema.get("properties", {})
    others = schema.get("additionalProperties", not (closed and own))
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name}: is missing"
    for name, member in value.items():
        if name in own:
            yield from faults(member, own[name], named, f"{path}.{name}", closed=closed)
        elif others is False:
            yield f"{path}.{name}: is not described"
        elif isinstance(others, dict):
            yield from faults(member, others, named, f"{path}.{name}", closed=closed)


def _is_number(value: Any) -> bool:
    return _TYPES["number"](value)


def _has_format(value: str, name: str) -> bool:
    try:
        match name:
            case "uuid":
                return str(UUID(value)) == value.lower()
            case "date-time":
                return datetime.fromisoformat(value).tzinfo is not None
            case _:
                raise AssertionError(f"unknown format {name}")
    except ValueError:
        return False
