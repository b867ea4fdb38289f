"""Rows of an export on their way in, read strictly. Pure."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Table

from threadmark.memory.errors import Refused
from threadmark.memory.exports.archive import DERIVED, LOCAL
from threadmark.memory.exports.spooled_lines import LINE_LENGTH_MAX
from threadmark.memory.model.admission import Hold, Selector
from threadmark.memory.model.assertion import Cardinality
from threadmark.memory.model.instants import FAR_US, from_us
from threadmark.memory.model.provenance import Origin
from threadmark.memory.model.values import canonical, check_json, load
from threadmark.memory.recall.recall_log import access_of
from threadmark.memory.store.rows import assertion_of, evidence_of
from threadmark.memory.text.identity import identity_key
from threadmark.memory.write.preparation import named_speaker, subject_key
from threadmark.memory.write.statement_digest import renewed_digest

__all__ = ["parsed"]

#: Columns that hold JSON text, and what it must be the text of.
_JSON: dict[str, dict[str, tuple[type, ...]]] = {
    "assertion": {"text": (str,), "value": (object,), "reason": (str,)},
    "evidence": {"quote": (str,)},
    "recall": {"namespace": (list,), "question": (dict,), "answers": (list,), "withheld": (dict,)},
    "quarantine": {"selector": (dict,)},
}


def parsed(line: str, path: str, tables: Mapping[str, Table]) -> tuple[str, dict[str, Any]]:
    """The kind and the row of a line. Raises Refused for everything that a later read would stumble over."""
    if len(line) > LINE_LENGTH_MAX:
        raise Refused(path, f"is longer than {LINE_LENGTH_MAX} characters")
    try:
        found = load(line)
        kind, row = found["kind"], dict(found["row"])
        table = tables[kind]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Refused(path, "is not a row of memory") from error
    wanted = {column.name for column in table.c} - LOCAL - DERIVED
    if "namespace_id" in table.c:
        wanted |= {"namespace"}
    if row.keys() != wanted:
        raise Refused(path, f"has other fields than a row of kind {kind!r}")
    for name, value in row.items():
        if name != "namespace" or "namespace_id" not in table.c:
            _check_cell(table, name, value, f"{path}.{name}")
    for name, types in _JSON.get(kind, {}).items():
        if row[name] is not None:
            _check_json_text(row[name], types, f"{path}.{name}")
    try:
        _read(kind, row)
    except Refused as error:
        raise Refused(f"{path}.{error.path}", error.why) from error
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise Refused(path, f"does not read as a row of kind {kind!r}: {error}") from error
    return kind, row | _identity_columns(kind, row)


def _identity_columns(kind: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns by which names are compared, made from the words: an older version's export holds folded names."""
    match kind:
        case "assertion":
            return {
                "subject_key": subject_key(row["kind"], row["subject"]),
                "attribute_key": None if row["attribute"] is None else identity_key(row["attribute"]),
                "digest": renewed_digest(row),
                "said_by": named_speaker(row["kind"], load(row["text"])),
            }
        case "evidence":
            return {"actor_key": None if row["actor"] is None else identity_key(row["actor"])}
        case "attribute":
            return {"attribute_key": identity_key(row["attribute_key"])}
        case _:
            return {}


def _check_cell(table: Table, name: str, value: Any, path: str) -> None:
    column = table.c[name]
    if value is None:
        if not column.nullable:
            raise Refused(path, "is missing")
        return
    wanted = column.type.python_type
    if wanted is object:  # SQLModel's own text type does not say what it is
        wanted = str
    right = type(value) in {int, float} if wanted is float else type(value) is wanted
    if not right:
        raise Refused(path, f"is not of type {wanted.__name__}")
    if isinstance(value, str) and "\0" in value:
        raise Refused(path, "holds a bare NUL")
    if isinstance(value, int):
        # Not the range of a client's values: an instant in microseconds, such as the end of time, lies beyond it.
        if not -(2**63) <= value < 2**63:
            raise Refused(path, "is an integer beyond 64 bits")
        return
    check_json(value, path)


def _check_json_text(text: str, types: tuple[type, ...], path: str) -> None:
    try:
        value = load(text)
    except (ValueError, RecursionError) as error:
        raise Refused(path, "is not the text of a JSON value") from error
    if not isinstance(value, types):
        raise Refused(path, f"is not the JSON text of a {types[0].__name__}")
    check_json(value, path)


def _read(kind: str, row: Mapping[str, Any]) -> None:
    """Make what readers make of the row, which raises where they would."""
    match kind:
        case "attribute":
            Cardinality(row["cardinality"])
        case "assertion":
            assertion_of({**row, "tenant_id": "", "labels": canonical(row["namespace"])})
            Hold(row["hold"])
            if not 0 <= row["confidence"] <= 1:
                raise Refused("confidence", "is not a number from 0 to 1")
            for begin, end in (("valid_from", "valid_to"), ("known_from", "known_to")):
                if row[begin] > row[end] or row[end] > FAR_US:
                    raise Refused(begin, f"and {end} are no interval")
            if (row["subject_key"] is None) != (row["attribute_key"] is None) and row["cardinality"] is not None:
                raise Refused("attribute_key", "and subject_key are given together")
        case "evidence":
            evidence_of(row)
            if row["once"] not in {0, 1}:
                raise Refused("once", "is neither 0 nor 1")
        case "recall":
            access_of(row)
            _check_answers(load(row["answers"]))
        case "quarantine":
            parts = Selector(**load(row["selector"])).parts()
            if not parts:
                raise Refused("selector", "names nothing; an empty selector would match every source")
            selector = load(row["selector"])
            Origin(**selector)
            from_us(row["at"])
        case _:
            from_us(row["at"])


def _check_answers(answers: list[Any]) -> None:
    for each in answers:
        match each:
            case [str(), int() | float()]:
                continue
            case _:
                raise Refused("answers", "are not pairs of an id and a score")
