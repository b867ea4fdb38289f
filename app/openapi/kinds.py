"""The types of bodies and answers as JSON schemas, as the decoder and the encoder of the API read them."""

import copy
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import inspect

from threadmark.app.openapi.formats import add_formats
from threadmark.app.openapi.operation import Operation

__all__ = ["Kinds"]

_REFERENCE = "#/components/schemas/{name}"
_RECORDS = (inspect.StructType, inspect.DataclassType, inspect.TypedDictType, inspect.NamedTupleType)


class Kinds:
    """The schemas of all types of all operations; `components` by the names of the types."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        kinds = [kind for each in operations for kind in _kinds_of(each) if kind is not None]
        found, components = msgspec.json.schema_components(kinds, ref_template=_REFERENCE)
        self.components: dict[str, Any] = components
        self._by_kind = list(zip(kinds, found, strict=True))
        _tidy([*components.values(), *found])
        for name, schema in components.items():
            for member, inner in schema.get("properties", {}).items():
                add_formats(name, member, inner)
        for kind, schema in self._by_kind:
            if kind is datetime:
                _say_instant(schema)
        for name, member in _instants(kinds):
            _say_instant(components[name]["properties"][member])

    def schema_of(self, kind: Any) -> dict[str, Any]:
        """The schema of a type of one of the operations."""
        return copy.deepcopy(next(schema for each, schema in self._by_kind if each == kind))


def _kinds_of(operation: Operation) -> Iterator[Any]:
    yield operation.body
    for parameter in operation.parameters.values():
        yield parameter.kind
    for answer in operation.answers.values():
        yield answer.kind


def _tidy(schemas: Iterable[Any]) -> None:
    """Give enumerations of words their type, and leave out that a member which may be null is null by default."""
    pending = list(schemas)
    while pending:
        each = pending.pop()
        if isinstance(each, list):
            pending.extend(each)
        elif isinstance(each, dict):
            pending.extend(each.values())
            if "default" in each and each["default"] is None:
                del each["default"]
            match each.get("enum"):
                case [bool() as only]:
                    del each["enum"]
                    each |= {"type": "boolean", "const": only}
                case [*values] if all(isinstance(value, str) for value in values):
                    each["type"] = "string"
                case _:
                    pass


def _instants(kinds: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """The members, with the names of their types, that are instants: msgspec calls those texts and no more."""
    pending: list[Any] = list(inspect.multi_type_info(kinds))
    seen: set[Any] = set()
    while pending:
        each = pending.pop()
        if isinstance(each, inspect.UnionType):
            pending.extend(each.types)
        elif isinstance(each, inspect.Metadata):
            pending.append(each.type)
        elif isinstance(each, inspect.DictType):
            pending.append(each.value_type)
        elif isinstance(each, inspect.TupleType):
            pending.extend(each.item_types)
        elif isinstance(each, inspect.CollectionType):
            pending.append(each.item_type)
        elif isinstance(each, _RECORDS) and each.cls not in seen:
            seen.add(each.cls)
            for field in each.fields:
                pending.append(field.type)
                if _is_instant(field.type):
                    yield each.cls.__name__, field.encode_name


def _is_instant(kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.UnionType):
        return any(_is_instant(each) for each in kind.types)
    return isinstance(kind, inspect.DateTimeType)


def _say_instant(schema: dict[str, Any]) -> None:
    for each in schema.get("anyOf", [schema]):
        if each.get("type") == "string":
            each["format"] = "date-time"
