"""Units of work that remove an import that was given up, in small transactions. No reader has seen its rows."""

from sqlalchemy import Connection, delete, select, update

from threadmark.memory.exports.archive import TABLES
from threadmark.memory.store.import_tables import ImportStatus, import_job, staged_line
from threadmark.memory.store.job_tables import outbox

__all__ = ["discard", "leftovers", "remove_some"]

BATCH_COUNT = 500


def discard(connection: Connection, job: int) -> bool:
    """Give an import up; False for one that is published already."""
    mine = (import_job.c.number == job) & (import_job.c.status != ImportStatus.PUBLISHED)
    return connection.execute(update(import_job).where(mine).values(status=ImportStatus.DISCARDED)).rowcount > 0


def remove_some(connection: Connection, job: int) -> bool:
    """Remove some rows of an import that was given up; False when that was all, which ends it."""
    status = connection.scalar(select(import_job.c.status).where(import_job.c.number == job).with_for_update())
    if status != ImportStatus.DISCARDED:
        return False
    tables = [table for table in TABLES.values() if "import_number" in table.c]
    for table in [*reversed(tables), staged_line]:
        some = select(table.c.number).where(table.c.import_number == job).order_by(table.c.number).limit(BATCH_COUNT)
        if numbers := list(connection.scalars(some)):
            connection.execute(delete(table).where(table.c.number.in_(numbers)))
            if table is TABLES["assertion"]:
                connection.execute(delete(outbox).where(outbox.c.entry.in_(numbers)))
            return True
    connection.execute(delete(import_job).where(import_job.c.number == job))
    return False


def leftovers(connection: Connection, before: int) -> list[tuple[int, str]]:
    """Imports that are abandoned (last touched before an instant) or at their end: number and status."""
    query = select(import_job.c.number, import_job.c.status).where(
        (import_job.c.status != ImportStatus.OPEN) | (import_job.c.touched_at < before)
    )
    return [(number, status) for number, status in connection.execute(query.order_by(import_job.c.number))]
