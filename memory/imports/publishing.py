"""Units of work at the end of an import: remove what was erased meanwhile, publish the rest in one commit, and tell the
index."""

from typing import Any

from sqlalchemy import Connection, delete, exists, insert, or_, select, update

from threadmark.memory.erase.erasure_jobs import erase_some, named
from threadmark.memory.erase.forget import forget_of
from threadmark.memory.erase.leftovers import recalls_telling
from threadmark.memory.errors import ImportGivenUp, Refused
from threadmark.memory.exports.archive import TABLES
from threadmark.memory.model.admission import Hold, Selector
from threadmark.memory.model.values import load
from threadmark.memory.store.import_tables import ImportStatus, StagedKind, import_job, staged_line
from threadmark.memory.store.job_tables import recall_log
from threadmark.memory.store.statements import enqueue
from threadmark.memory.store.tables import assertion, attribute, namespace
from threadmark.memory.write.quarantine import held_selectors, queue_behind_holds, rests_on

__all__ = ["Contested", "ErasuresFirst", "lose_erased", "publish", "queue_some"]

#: Rows that one transaction queues or looks at.
BATCH_COUNT = 500


class Contested(Exception):
    """A write that came first contradicts an assertion of the import."""

    def __init__(self, assertion_id: str) -> None:
        super().__init__(assertion_id)
        self.assertion_id = assertion_id


class ErasuresFirst(Exception):
    """An erasure was noted that the import has not met yet."""


def lose_erased(connection: Connection, job: int, tenant_id: str, after: int, now: int) -> int | None:
    """Remove and count some of what an erasure names that was noted while the import was staged.

    `after` is what the call before gave (0 at first). None when nothing is left to do.
    """
    noted = connection.execute(_staged(job, StagedKind.ERASURE).limit(1)).first()
    if noted is None:
        return None
    what = forget_of(load(noted.row))
    wanted = named(tenant_id, what)
    if what.namespace is not None:
        # The erasure may have removed the place already.
        wanted = or_(wanted, ~exists().where(namespace.c.namespace_id == assertion.c.namespace_id))
    if erase_some(connection, tenant_id, noted.key, what, wanted & (assertion.c.import_number == job), now):
        return 0
    mine = recall_log.c.import_number == job
    if (page := recalls_telling(connection, mine, noted.key, what, after, BATCH_COUNT)) is not None:
        connection.execute(delete(recall_log).where(recall_log.c.number.in_(page.numbers)))
        return page.after
    if what.tenant:
        connection.execute(delete(staged_line).where(_is_staged(job, StagedKind.QUARANTINE)))
    connection.execute(delete(staged_line).where(staged_line.c.number == noted.number))
    return 0


def publish(connection: Connection, job: int, tenant_id: str) -> None:
    """Publish the import to all readers at once, but for what rests on a source that is kept apart here: that waits.

    Raises ErasuresFirst while there are erasures to apply, Contested and Refused when a write that came first
    contradicts it, ImportGivenUp when another process took it for abandoned; and then changes nothing.
    """
    # Another server that keeps a source apart now would not see these rows, and they would be believed.
    queue_behind_holds(connection, tenant_id)
    # First of what it looks at: a writer that meets a staged row, or notes an erasure, holds this row until it is done.
    row = connection.execute(select(import_job).where(import_job.c.number == job).with_for_update()).first()
    if row is None or row.status != ImportStatus.OPEN:
        raise ImportGivenUp
    if connection.execute(_staged(job, StagedKind.ERASURE).limit(1)).first() is not None:
        raise ErasuresFirst
    lasting = exists().where(assertion.c.assertion_id == staged_line.c.key)
    contest = connection.execute(_staged(job, StagedKind.CONTEST).where(lasting).limit(1)).first()
    if contest is not None:
        raise Contested(contest.key)
    for parts in held_selectors(connection, tenant_id):
        named_here = (assertion.c.import_number == job) & rests_on(Selector(**parts), tenant_id)
        held = update(assertion).where(named_here, assertion.c.hold == Hold.NONE)
        connection.execute(held.values(hold=Hold.SOURCE))
    _declare(connection, job)
    for line in connection.execute(_staged(job, StagedKind.QUARANTINE)).all():
        connection.execute(insert(TABLES["quarantine"]).values(**load(line.row)))
    connection.execute(delete(staged_line).where(staged_line.c.import_number == job))
    connection.execute(
        update(import_job).where(import_job.c.number == job).values(status=ImportStatus.PUBLISHED, queued_to=0)
    )


def queue_some(connection: Connection, job: int) -> bool:
    """Have the index brought up to date with some of a published import; False when it knows of all, which ends it."""
    row = connection.execute(select(import_job).where(import_job.c.number == job).with_for_update()).first()
    if row is None:
        return False
    query = (
        select(assertion.c.number, assertion.c.namespace_id)
        .where(assertion.c.import_number == job, assertion.c.number > row.queued_to)
        .order_by(assertion.c.number)
        .limit(BATCH_COUNT)
    )
    found = [(number, namespace_id) for number, namespace_id in connection.execute(query)]
    if not found:
        connection.execute(delete(import_job).where(import_job.c.number == job))
        return False
    enqueue(connection, row.tenant_id, found)
    connection.execute(update(import_job).where(import_job.c.number == job).values(queued_to=found[-1][0]))
    return True


def _is_staged(job: int, kind: StagedKind) -> Any:
    return (staged_line.c.import_number == job) & (staged_line.c.kind == kind)


def _staged(job: int, kind: StagedKind) -> Any:
    return select(staged_line).where(_is_staged(job, kind)).order_by(staged_line.c.number)


def _declare(connection: Connection, job: int) -> None:
    """Declare the attributes. Raises Refused for one that was declared otherwise meanwhile."""
    for line in connection.execute(_staged(job, StagedKind.ATTRIBUTE)).all():
        row = load(line.row)
        same = (attribute.c.tenant_id == row["tenant_id"]) & (attribute.c.attribute_key == row["attribute_key"])
        declared = connection.scalar(select(attribute.c.cardinality).where(same))
        if declared is None:
            connection.execute(insert(attribute).values(**row))
        elif declared != row["cardinality"]:
            raise Refused(f"line {line.line}.cardinality", f"of this attribute was declared here as {declared!r}")
