"""The lines of an import, read and checked some at a time, before any of them meets the database. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from threadmark.memory.errors import Refused
from threadmark.memory.exports.archive import FORMAT, TABLES
from threadmark.memory.imports.archived_rows import parsed
from threadmark.memory.model.scope import Namespace, Scope, namespace_of
from threadmark.memory.model.values import canonical, load
from threadmark.memory.store.rows import spelled_labels

__all__ = ["Line", "number_of_assertion", "numbered", "read_some"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row as it was exported. `namespace` is its place, where its kind has one."""

    number: int  #: from 1, the heading
    kind: str
    row: dict[str, Any]
    namespace: Namespace | None

    @property
    def path(self) -> str:
        """What a refusal names."""
        return f"line {self.number}"


def numbered(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The lines after the heading. Raises Refused when that is missing, or another."""
    rest = enumerate(lines, 1)
    at, heading = next(rest, (1, None))
    path = f"line {at}"
    if heading is None:
        raise Refused(path, "is missing; the first line of an export is its heading")
    try:
        found = load(heading)
    except ValueError as error:
        raise Refused(path, "is not JSON") from error
    if found != FORMAT:
        raise Refused(path, f"is not the heading {canonical(FORMAT)}")
    return rest


def read_some(rest: Iterator[tuple[int, str]], scope: Scope, count_max: int) -> list[Line]:
    """The next lines; none at the end. Raises Refused for one that is no row, or that lies outside the scope."""
    return [_line(number, line, scope) for number, line in islice(rest, count_max)]


def number_of_assertion(lines: Iterable[str], assertion_id: str) -> int:
    """Which line brings an assertion; 0 when none does."""
    for number, line in enumerate(lines, 1):
        if assertion_id in line:
            found = load(line)
            if found.get("kind") == "assertion" and found["row"]["assertion_id"] == assertion_id:
                return number
    return 0


def _line(number: int, line: str, scope: Scope) -> Line:
    path = f"line {number}"
    kind, row = parsed(line, path, TABLES)
    labels = None
    if "namespace" in row and "namespace_id" in TABLES[kind].c:
        labels = namespace_of(row.pop("namespace"), f"{path}.namespace")
        if not scope.covers(scope.tenant_id, labels):
            raise Refused(f"{path}.namespace", "is outside the scope of the request")
        if kind == "assertion":
            row["spelled_labels"] = spelled_labels(labels)
    if kind == "quarantine" and scope.namespace:
        raise Refused(path, "is a quarantine of the whole tenant, and the request is for a part of it")
    return Line(number=number, kind=kind, row=row, namespace=labels)
