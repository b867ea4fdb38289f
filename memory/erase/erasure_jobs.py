"""Erasure: what a selector names is removed everywhere memory keeps it, and counted. A job that can be taken up again.

Only a tombstone is left of an assertion: its id, so that it does not come back from an index, a backup or an import.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, Select, and_, delete, exists, func, insert, or_, select, update

from threadmark.memory.erase.forget import Erasure, Forget, forget_of
from threadmark.memory.erase.raw_turns import turns_of, with_turns
from threadmark.memory.errors import BoundReached, UnknownJob
from threadmark.memory.model.assertion import ITEM
from threadmark.memory.model.instants import from_us, to_us
from threadmark.memory.model.scope import Scope
from threadmark.memory.model.values import canonical, load
from threadmark.memory.store.job_tables import erasure, outbox, receipt, tombstone
from threadmark.memory.store.pending import note_erasure, published
from threadmark.memory.store.statements import chunks, enqueue, known_namespaces, rows
from threadmark.memory.store.tables import (
    assertion,
    evidence,
    succession,
)
from threadmark.memory.text.identity import identity_key
from threadmark.memory.write.quarantine import selected

__all__ = [
    "BATCH_COUNT",
    "begin",
    "count_also",
    "counted",
    "erase_batch",
    "erase_some",
    "erased_ids",
    "finish",
    "job",
    "named",
    "tenants_with_expired",
    "unfinished",
    "what_of",
]

BATCH_COUNT = 200
#: When a tenant at its bound may ask again (seconds).
RETRY_S = 5.0
_COUNTED = ("assertions", "evidence", "successions")
Row = dict[str, Any]


def begin(connection: Connection, tenant_id: str, what: Forget, now: int, open_max: int | None = None) -> Erasure:
    """Note the job before anything is erased, so that it can be taken up again.

    Raises BoundReached where the tenant has `open_max` that are not done.
    """
    if open_max is not None and _open_count(connection, tenant_id) >= open_max:
        raise BoundReached("memory_erasures", open_max, RETRY_S)
    erasure_id = str(uuid4())
    connection.execute(
        insert(erasure).values(
            erasure_id=erasure_id,
            tenant_id=tenant_id,
            selector=what.spelled(),
            status="running",
            counts="{}",
            created_at=now,
        )
    )
    if what.expired_by is None:
        note_erasure(connection, tenant_id, erasure_id, what.spelled())
    return job(connection, tenant_id, erasure_id)


def job(connection: Connection, tenant_id: str, erasure_id: str) -> Erasure:
    """A job of the tenant. Raises UnknownJob."""
    row = _row(connection, tenant_id, erasure_id)
    return Erasure(
        erasure_id=erasure_id,
        is_done=row["status"] == "done",
        created_at=from_us(row["created_at"]),
        done_at=None if row["done_at"] is None else from_us(row["done_at"]),
        counts=load(row["counts"]),
    )


def unfinished(connection: Connection) -> list[tuple[str, str]]:
    """The jobs that were begun and not finished: tenant and id."""
    query = select(erasure.c.tenant_id, erasure.c.erasure_id).where(erasure.c.status != "done")
    return [(tenant_id, erasure_id) for tenant_id, erasure_id in connection.execute(query.order_by(erasure.c.number))]


def counted(connection: Connection, tenant_id: str, what: Forget) -> dict[str, int]:
    """What an erasure would remove now: a dry run."""
    wanted = named(tenant_id, what) & published(assertion)
    roots = select(assertion.c.root_id).where(wanted).distinct()
    if what.expired_by is None:
        wanted = or_(wanted, assertion.c.root_id.in_(turns_of(roots)))
        roots = select(assertion.c.root_id).where(wanted).distinct()
    counts = {
        "assertions": select(func.count()).select_from(assertion).where(wanted),
        "evidence": select(func.count()).select_from(evidence).where(evidence.c.root_id.in_(roots)),
    }
    return {name: int(connection.scalar(query) or 0) for name, query in counts.items()}


def erase_batch(connection: Connection, tenant_id: str, erasure_id: str, now: int) -> list[str]:
    """Erase some of what the job names, in one transaction; the ids. Empty when nothing is left."""
    row = _locked_row(connection, tenant_id, erasure_id)
    if row["selector"] is None:
        return []
    what = forget_of(load(row["selector"]))
    return erase_some(connection, tenant_id, erasure_id, what, named(tenant_id, what), now)


def erase_some(
    connection: Connection, tenant_id: str, erasure_id: str, what: Forget, wanted: Any, now: int
) -> list[str]:
    """Erase and count some of the assertions that are `wanted`, with all that hangs on them; the ids."""
    first = select(assertion.c.number).where(wanted).order_by(assertion.c.number).limit(BATCH_COUNT).with_for_update()
    numbers = list(connection.scalars(first))
    # Looked at again under the lock: what is said again at this moment has not expired.
    again = select(assertion.c.root_id).where(assertion.c.number.in_(numbers), wanted).distinct()
    roots = sorted(connection.scalars(again)) if numbers else []
    if not roots:
        return []
    if what.expired_by is None:
        roots = with_turns(connection, roots)
    # With a statement go all its versions: they say the same words.
    versions = rows(
        connection, select(assertion.c.assertion_id, assertion.c.number).where(assertion.c.root_id.in_(roots))
    )
    ids = [each["assertion_id"] for each in versions]
    count_also(connection, tenant_id, erasure_id, _removed(connection, tenant_id, erasure_id, roots, versions, now))
    return ids


def finish(connection: Connection, tenant_id: str, erasure_id: str, now: int) -> Erasure:
    """Forget the selector, and close the job: everything that it names is erased."""
    row = _locked_row(connection, tenant_id, erasure_id)
    if row["selector"] is not None:
        what = forget_of(load(row["selector"]))
        own = select(func.count()).select_from(tombstone).where(tombstone.c.erasure_id == erasure_id)
        entries = {"entries": int(connection.scalar(own) or 0)}
        counts = dict.fromkeys([*_COUNTED, *_counted_also(what)], 0) | load(row["counts"]) | entries
        connection.execute(
            update(erasure)
            .where(erasure.c.erasure_id == erasure_id)
            # The selector may be a name: what remains tells that something was erased, and how much.
            .values(selector=None, status="done", done_at=now, counts=canonical(counts))
        )
    return job(connection, tenant_id, erasure_id)


def _counted_also(what: Forget) -> list[str]:
    """Counts that are reported even when they are zero."""
    if what.tenant:
        return ["namespace_prefixes", "namespaces", "attribute_locks", "quarantines", "recalls"]
    if what.namespace is not None:
        return ["namespace_prefixes", "namespaces", "attribute_locks", "recalls"]
    return ["recalls"] if what.subject is None else ["attribute_locks", "recalls"]


def what_of(connection: Connection, tenant_id: str, erasure_id: str, *, locked: bool = False) -> Forget | None:
    """The selector of a job; None once it is done, because a selector may contain a name. Raises UnknownJob.

    `locked`: others who perform the same job wait until this transaction ends.
    """
    row = (_locked_row if locked else _row)(connection, tenant_id, erasure_id)
    return None if row["selector"] is None else forget_of(load(row["selector"]))


def count_also(connection: Connection, tenant_id: str, erasure_id: str, counts: Mapping[str, int]) -> None:
    """Add what was removed elsewhere to what a job removed."""
    row = _locked_row(connection, tenant_id, erasure_id)
    had = load(row["counts"])
    total = had | {name: had.get(name, 0) + count for name, count in counts.items()}
    connection.execute(update(erasure).where(erasure.c.erasure_id == erasure_id).values(counts=canonical(total)))


def tenants_with_expired(connection: Connection, now: int) -> list[str]:
    """The tenants that have something to sweep."""
    query = select(assertion.c.tenant_id).where(assertion.c.expires_at <= now).distinct()
    return sorted(connection.scalars(query))


def erased_ids(connection: Connection, erasure_id: str) -> list[str]:
    """The ids that a job has erased."""
    query = select(tombstone.c.assertion_id).where(tombstone.c.erasure_id == erasure_id).order_by(tombstone.c.number)
    return list(connection.scalars(query))


def _open_count(connection: Connection, tenant_id: str) -> int:
    is_open = (erasure.c.tenant_id == tenant_id) & (erasure.c.status != "done")
    return int(connection.scalar(select(func.count()).select_from(erasure).where(is_open)) or 0)


def _row(connection: Connection, tenant_id: str, erasure_id: str) -> Row:
    return _only(rows(connection, _job(tenant_id, erasure_id)), erasure_id)


def _locked_row(connection: Connection, tenant_id: str, erasure_id: str) -> Row:
    """For writes alone: the database refuses a lock from a reader's snapshot if the row has changed since."""
    return _only(rows(connection, _job(tenant_id, erasure_id).with_for_update()), erasure_id)


def _job(tenant_id: str, erasure_id: str) -> Select[Any]:
    return select(erasure).where(erasure.c.tenant_id == tenant_id, erasure.c.erasure_id == erasure_id)


def _only(found: Sequence[Row], erasure_id: str) -> Row:
    if not found:
        raise UnknownJob(erasure_id)
    return found[0]


def named(tenant_id: str, what: Forget) -> Any:
    """The assertions that a selector names, as a condition."""
    mine = assertion.c.tenant_id == tenant_id
    if what.namespace is not None:
        scope = Scope(tenant_id=tenant_id, namespace=what.namespace)
        return and_(mine, assertion.c.namespace_id.in_(known_namespaces(scope)))
    if what.subject is not None:
        return and_(mine, _of_subject(what.subject))
    if what.source is not None:
        return and_(mine, exists().where(evidence.c.root_id == assertion.c.root_id, selected(what.source, tenant_id)))
    if what.expired_by is not None:
        now = to_us(what.expired_by)
        # A statement whose later version was confirmed has not expired.
        version = assertion.alias()
        lasting = exists().where(version.c.root_id == assertion.c.root_id, version.c.expires_at > now)
        return and_(mine, assertion.c.expires_at <= now, ~lasting)
    return mine


def _of_subject(subject: str) -> Any:
    """About a subject or said by it: by exactly this name, not by one that differs in an accent or in case."""
    key = identity_key(subject)
    spoken = exists().where(
        evidence.c.tenant_id == assertion.c.tenant_id,
        evidence.c.root_id == assertion.c.root_id,
        evidence.c.actor_key == key,
    )
    # A turn may name its speaker in its words alone.
    return or_(and_(assertion.c.subject_key == key, assertion.c.kind != ITEM), assertion.c.said_by == key, spoken)


def _removed(
    connection: Connection, tenant_id: str, erasure_id: str, roots: Sequence[str], versions: Sequence[Row], now: int
) -> dict[str, int]:
    ids = [each["assertion_id"] for each in versions]
    gone = {each["number"] for each in versions}
    counts = dict.fromkeys(_COUNTED, 0)
    followers: list[tuple[int, int]] = []
    for part in chunks(ids):
        after = select(assertion.c.number, assertion.c.namespace_id).where(assertion.c.previous_id.in_(part))
        followers += [(each, number) for each, number in connection.execute(after) if each not in gone]
        # The turn after an erased one carries its words in the context field.
        connection.execute(update(assertion).where(assertion.c.previous_id.in_(part)).values(previous_id=None))
        counts["assertions"] += connection.execute(delete(assertion).where(assertion.c.assertion_id.in_(part))).rowcount
        either = or_(succession.c.older_id.in_(part), succession.c.newer_id.in_(part))
        counts["successions"] += connection.execute(delete(succession).where(either)).rowcount
        # A stored answer that repeats erased words would return them to a repeated request.
        connection.execute(delete(receipt).where(receipt.c.words_of.in_(part)))
    for numbers in chunks(sorted(gone)):
        connection.execute(delete(outbox).where(outbox.c.entry.in_(numbers)))
    for part in chunks(roots):
        counts["evidence"] += connection.execute(delete(evidence).where(evidence.c.root_id.in_(part))).rowcount
    connection.execute(
        insert(tombstone),
        [{"tenant_id": tenant_id, "assertion_id": each, "erasure_id": erasure_id, "erased_at": now} for each in ids],
    )
    enqueue(connection, tenant_id, followers)
    enqueue(connection, tenant_id, [(each, 0) for each in sorted(gone)])
    return counts
