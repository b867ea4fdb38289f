"""Units of work that stage an import: readers do not see what they insert until the import is published."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from threadmark.memory.errors import ImportGivenUp, ImportUnderWay, Refused
from threadmark.memory.exports.archive import TABLES
from threadmark.memory.imports.fitting import Fitting
from threadmark.memory.imports.lines import Line
from threadmark.memory.model.scope import Namespace, Scope, namespace_key
from threadmark.memory.model.values import canonical, load
from threadmark.memory.store.import_tables import ImportStatus, StagedKind, import_job, staged_line
from threadmark.memory.store.job_tables import tombstone
from threadmark.memory.store.statements import chunks, namespace_ids
from threadmark.memory.store.tables import attribute, namespace

__all__ = ["Begun", "Staged", "begin", "stage"]

#: An import that has not staged a line for so long is abandoned (microseconds): it is removed, and another may begin.
ABANDONED_AFTER_US = 60_000_000
#: Lines that take effect with the publication: they are few, and every write depends on them.
_AT_THE_END = {"attribute": StagedKind.ATTRIBUTE, "quarantine": StagedKind.QUARANTINE}
_IDS = {
    "attribute": ("attribute_key",),
    "assertion": ("assertion_id",),
    "evidence": ("evidence_id",),
    "succession": ("older_id", "newer_id", "kind"),
    "recall": ("recall_id",),
    "quarantine": ("quarantine_id",),
}
_Key = tuple[Any, ...]
_PLACES = select(namespace.c.labels, namespace.c.namespace_id).where(
    namespace.c.tenant_id == bindparam("tenant_id"), namespace.c.labels.in_(bindparam("labels", expanding=True))
)
_INSERTS = {kind: insert(table).inline() for kind, table in (TABLES | {"": staged_line}).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A new import; or, with `is_leftover`, one that was given up and has to be removed first."""

    number: int
    is_leftover: bool


@dataclass(slots=True, kw_only=True)
class Staged:
    """What became of lines, by kind."""

    added: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    erased: int = 0


def begin(connection: Connection, tenant_id: str, now: int) -> Begun:
    """Note an import. Raises ImportUnderWay beside one of the same tenant that is still staging."""
    query = select(import_job).where(import_job.c.tenant_id == tenant_id, import_job.c.status != ImportStatus.PUBLISHED)
    found = connection.execute(query.with_for_update()).first()
    if found is None:
        made = insert(import_job).values(tenant_id=tenant_id, status=ImportStatus.OPEN, queued_to=0, touched_at=now)
        number = connection.execute(made.returning(import_job.c.number)).scalar_one()
        return Begun(number=number, is_leftover=False)
    if found.status == ImportStatus.OPEN:
        if now - found.touched_at <= ABANDONED_AFTER_US:
            raise ImportUnderWay
        give_up = update(import_job).where(import_job.c.number == found.number).values(status=ImportStatus.DISCARDED)
        connection.execute(give_up)
    return Begun(number=found.number, is_leftover=True)


def stage(connection: Connection, job: int, scope: Scope, lines: Sequence[Line], now: int) -> Staged:
    """Stage lines, in one transaction: other writes may wait for as long as it takes.

    Raises Refused with the number of the line, for an id that another tenant has and for a belief that contradicts one
    held here; ImportGivenUp when another process took the import for abandoned.
    """
    mine = (import_job.c.number == job) & (import_job.c.status == ImportStatus.OPEN)
    if connection.execute(update(import_job).where(mine).values(touched_at=now)).rowcount == 0:
        raise ImportGivenUp
    batch = _Batch(connection, job, scope, lines)
    batch.stage(lines)
    return batch.done


class _Batch:
    """Lines of one transaction, and what is held of them: looked up for all of them at once."""

    def __init__(self, connection: Connection, job: int, scope: Scope, lines: Sequence[Line]) -> None:
        self._connection, self._job, self._tenant_id = connection, job, scope.tenant_id
        self._erased = self._all_erased(lines)
        self._owners = {kind: self._all_owners(kind, lines) for kind in {line.kind for line in lines}}
        self._namespaces = self._all_namespaces(lines)
        self.done = Staged()

    def stage(self, lines: Sequence[Line]) -> None:
        """Insert those that are neither held nor erased."""
        new = [(line, self._row_of(line)) for line in lines if self._is_new(line)]
        fitting = Fitting(self._connection, self._job, self._tenant_id, ((line.kind, row) for line, row in new))
        staged: dict[str, list[dict[str, Any]]] = {}
        for line, row in new:
            if line.kind in _AT_THE_END:
                staged.setdefault("", []).append(self._waiting(line, row))
            else:
                if (declared := fitting.declares(line.kind, row)) is not None:
                    staged.setdefault("", []).append(
                        self._waiting(replace(line, kind="attribute", row=declared), declared)
                    )
                fitted = fitting.fitted(line.kind, row, line.path)
                staged.setdefault(line.kind, []).append(fitted | {"import_number": self._job})
            self.done.added[line.kind] += 1
        for kind, rows in staged.items():
            self._connection.execute(_INSERTS[kind], rows)

    def _is_new(self, line: Line) -> bool:
        if self._erased and not self._erased.isdisjoint(_assertions_in(line)):
            self.done.erased += 1
            return False
        owner = self._owners[line.kind].setdefault(_key_of(line), "")
        if owner == self._tenant_id:
            self.done.known[line.kind] += 1
            return False
        if owner:
            raise Refused(line.path, "has an id that is taken")
        self._owners[line.kind][_key_of(line)] = self._tenant_id
        return True

    def _row_of(self, line: Line) -> dict[str, Any]:
        row = line.row | {"tenant_id": self._tenant_id}
        return row if line.namespace is None else row | {"namespace_id": self._namespaces[line.namespace]}

    def _waiting(self, line: Line, row: dict[str, Any]) -> dict[str, Any]:
        return {
            "import_number": self._job,
            "kind": _AT_THE_END[line.kind],
            "key": canonical(list(_key_of(line))),
            "line": line.number,
            "row": canonical(row),
        }

    def _all_namespaces(self, lines: Iterable[Line]) -> dict[Namespace, int]:
        wanted = {line.namespace: namespace_key(line.namespace) for line in lines if line.namespace is not None}
        numbers: dict[str, int] = {}
        for part in chunks(sorted({*wanted.values()})):
            values = {"tenant_id": self._tenant_id, "labels": part}
            numbers.update(map(tuple, self._connection.execute(_PLACES, values)))
        found = {labels: numbers[key] for labels, key in wanted.items() if key in numbers}
        new = wanted.keys() - found.keys()
        return found | namespace_ids(self._connection, self._tenant_id, sorted(new))

    def _all_erased(self, lines: Iterable[Line]) -> set[str]:
        ids = sorted({each for line in lines for each in _assertions_in(line)})
        found: set[str] = set()
        for part in chunks(ids):
            query = select(tombstone.c.assertion_id).where(tombstone.c.assertion_id.in_(part))
            found.update(self._connection.scalars(query))
        return found

    def _all_owners(self, kind: str, lines: Iterable[Line]) -> dict[_Key, str]:
        """The tenants of those rows that are there."""
        table, names = TABLES[kind], _IDS[kind]
        keys = [_key_of(line) for line in lines if line.kind == kind]
        found: dict[_Key, str] = {}
        for part in chunks(sorted({key[0] for key in keys})):
            query = select(*(table.c[name] for name in names), table.c.tenant_id).where(table.c[names[0]].in_(part))
            if table is attribute:
                query = query.where(table.c.tenant_id == self._tenant_id)
            found.update((tuple(row[:-1]), row[-1]) for row in self._connection.execute(query))
        if kind in _AT_THE_END:
            found |= self._all_waiting(_AT_THE_END[kind], keys)
        return found

    def _all_waiting(self, kind: StagedKind, keys: Iterable[_Key]) -> dict[_Key, str]:
        spelled = {canonical(list(key)): key for key in keys}
        found: dict[_Key, str] = {}
        for part in chunks(sorted(spelled)):
            mine = (staged_line.c.import_number == self._job) & (staged_line.c.kind == kind)
            query = select(staged_line.c.key).where(mine, staged_line.c.key.in_(part))
            found.update((spelled[key], self._tenant_id) for key in self._connection.scalars(query))
        return found


def _key_of(line: Line) -> _Key:
    return tuple(line.row[name] for name in _IDS[line.kind])


def _assertions_in(line: Line) -> list[str]:
    if line.kind == "recall":
        return [each for each, _ in load(line.row["answers"])]
    return [line.row[name] for name in ("assertion_id", "root_id", "older_id", "newer_id") if name in line.row]
