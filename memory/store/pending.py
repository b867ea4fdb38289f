"""Rows that an import has staged and not published: readers do not see them, and writers take precedence."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Table, bindparam, insert, or_, select, update

from threadmark.memory.store.import_tables import ImportStatus, StagedKind, import_job, staged_line
from threadmark.memory.store.tables import assertion, evidence

__all__ = ["CONTESTED", "make_moment_free", "note_erasure", "published", "without_pending"]

Row = dict[str, Any]
#: The hold of a staged row that a write contradicts: it is out of the indexes of what is held. No reader sees it.
CONTESTED = "contested"
_HIDDEN = select(import_job.c.number).where(import_job.c.status != ImportStatus.PUBLISHED)
#: Locked against the end of the import: it counts its contests when no writer is about to add one.
_PENDING = _HIDDEN.where(import_job.c.number.in_(bindparam("numbers", expanding=True))).with_for_update(read=True)
_OPEN = (
    select(import_job.c.number)
    .where(import_job.c.tenant_id == bindparam("tenant_id"), import_job.c.status == ImportStatus.OPEN)
    .with_for_update(read=True)
)


def published(table: Table) -> Any:
    """That a row is no import's, or of one that is published, as a condition."""
    return or_(table.c.import_number.is_(None), table.c.import_number.not_in(_HIDDEN))


def without_pending(connection: Connection, found: list[Row]) -> list[Row]:
    """Of rows that a write would take for held, those that are published.

    The others make way, and their import is refused with the line: as if the write had come before it.
    """
    hidden = _pending(connection, {row["import_number"] for row in found})
    if not hidden:
        return found
    for row in found:
        if row["import_number"] in hidden and not row["hold"]:
            same = assertion.c.number == row["number"]
            connection.execute(update(assertion).where(same).values(hold=CONTESTED))
            _note(connection, row["import_number"], StagedKind.CONTEST, row["assertion_id"], "{}")
    return [row for row in found if row["import_number"] not in hidden]


def make_moment_free(connection: Connection, found: Sequence[tuple[int, int | None]]) -> set[int]:
    """Of sources (number, import), those that are not published yet.

    The caller's write records the moment; the staged row is a further source of its own statement.
    """
    hidden = _pending(connection, {import_number for _, import_number in found})
    numbers = {number for number, import_number in found if import_number in hidden}
    if numbers:
        connection.execute(update(evidence).where(evidence.c.number.in_(numbers)).values(once=0))
    return numbers


def note_erasure(connection: Connection, tenant_id: str, erasure_id: str, selector: str) -> None:
    """Have the open import of the tenant lose what an erasure names before it is published.

    What it stages later than the erasure looks would come to be seen after the erasure's end.
    """
    for number in connection.scalars(_OPEN, {"tenant_id": tenant_id}).all():
        _note(connection, number, StagedKind.ERASURE, erasure_id, selector)


def _pending(connection: Connection, numbers: Collection[int | None]) -> set[int]:
    asked = sorted({each for each in numbers if each is not None})
    return set(connection.scalars(_PENDING, {"numbers": asked})) if asked else set()


def _note(connection: Connection, number: int, kind: StagedKind, key: str, row: str) -> None:
    connection.execute(insert(staged_line).values(import_number=number, kind=kind, key=key, line=0, row=row))
