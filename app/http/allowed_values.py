"""What is allowed where a value is none of a closed set: the decoder's message names the value alone."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import inspect

__all__ = ["with_allowed_values"]

_STEP = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<index>\d+|\.\.\.)\]")
_NOT_ALLOWED = "Invalid enum value"
_SEQUENCES = (inspect.ListType, inspect.SetType, inspect.FrozenSetType, inspect.VarTupleType)


def with_allowed_values(why: str, kind: Any, place: str = "$") -> str:
    """The decoder's message, with the values that the type `kind` allows at `place` (`$.a[0]`) if it is about them."""
    if not why.startswith(_NOT_ALLOWED):
        return why
    types = list(_members([inspect.type_info(kind)]))
    for step in _STEP.finditer(place):
        types = list(_members(inner for each in types for inner in _inside(each, step["name"])))
    # Of a parameter that comes several times only its name is known, not which of its values it was.
    items = [inner for each in types if isinstance(each, _SEQUENCES) for inner in _members([each.item_type])]
    allowed = [str(value) for each in (*types, *items) for value in _values(each)]
    return f"{why}; allowed are {', '.join(dict.fromkeys(allowed))}" if allowed else why


def _members(types: Iterable[inspect.Type]) -> Iterator[inspect.Type]:
    """The types themselves, without unions and what they are annotated with."""
    for each in types:
        if isinstance(each, inspect.UnionType):
            yield from _members(each.types)
        elif isinstance(each, inspect.Metadata):
            yield from _members([each.type])
        else:
            yield each


def _inside(kind: inspect.Type, name: str | None) -> Iterator[inspect.Type]:
    if isinstance(kind, inspect.StructType | inspect.DataclassType | inspect.TypedDictType):
        yield from (field.type for field in kind.fields if name in (field.encode_name, field.name))
    elif isinstance(kind, inspect.DictType):
        yield kind.value_type
    elif name is None and isinstance(kind, _SEQUENCES):
        yield kind.item_type
    elif name is None and isinstance(kind, inspect.TupleType):
        yield from kind.item_types


def _values(kind: inspect.Type) -> Iterator[object]:
    if isinstance(kind, inspect.LiteralType):
        yield from kind.values
    elif isinstance(kind, inspect.EnumType):
        yield from (each.value for each in kind.cls)
