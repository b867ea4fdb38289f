"""What an erasure is about to remove, in other stores' terms: ids, words, and the moments that they were read in.

Owners of external copies ask for this first: after the erasure the words are no longer known.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from threadmark.memory.erase.erasure_jobs import named
from threadmark.memory.erase.forget import Forget
from threadmark.memory.model.provenance import Origin
from threadmark.memory.model.values import load
from threadmark.memory.store.rows import evidence_of
from threadmark.memory.store.statements import rows
from threadmark.memory.store.tables import assertion, evidence

__all__ = ["ErasureManifest", "erasure_manifest_of"]

ROOT_COUNT = 200
_VERSIONS = select(assertion).where(assertion.c.root_id.in_(bindparam("roots", expanding=True)))
_EVIDENCE = select(evidence).where(evidence.c.root_id.in_(bindparam("roots", expanding=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureManifest:
    """A part of what a selector names. `after` begins the next part; None when this was the last.

    `whole_thread` is set where the request named the whole thread, and not single moments of it.
    """

    assertion_ids: frozenset[str]
    texts: frozenset[str]
    origins: Sequence[Origin]
    whole_thread: str | None
    after: str | None


def erasure_manifest_of(connection: Connection, tenant_id: str, what: Forget, after: str = "") -> ErasureManifest:
    """The statements that a selector names, with all their versions and sources: a few hundred at a time."""
    named_roots = select(assertion.c.root_id).where(named(tenant_id, what), assertion.c.root_id > after)
    roots = list(connection.scalars(named_roots.distinct().order_by(assertion.c.root_id).limit(ROOT_COUNT)))
    versions = rows(connection, _VERSIONS, {"roots": roots})
    sources = [evidence_of(row) for row in rows(connection, _EVIDENCE, {"roots": roots})]
    quotes = {each.origin.quote for each in sources if each.origin.quote is not None}
    values = {value for row in versions if isinstance(value := load(row["value"]), str) and value}
    return ErasureManifest(
        assertion_ids=frozenset(row["assertion_id"] for row in versions),
        texts=frozenset({load(row["text"]) for row in versions} | quotes | values),
        origins=[each.origin for each in sources],
        whole_thread=_whole_thread(what),
        after=roots[-1] if len(roots) == ROOT_COUNT else None,
    )


def _whole_thread(what: Forget) -> str | None:
    parts = {} if what.source is None else what.source.parts()
    return str(parts["thread_ref"]) if parts.keys() == {"thread_ref"} else None
