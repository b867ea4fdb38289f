"""How staged rows fit to what is held: looked up for all lines of a transaction at once, in few statements."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, literal, or_, select

from threadmark.memory.errors import Refused
from threadmark.memory.model.admission import Hold
from threadmark.memory.model.assertion import Cardinality
from threadmark.memory.model.instants import FAR_US
from threadmark.memory.model.values import canonical, load
from threadmark.memory.store.import_tables import StagedKind, staged_line
from threadmark.memory.store.statements import IS_HELD, chunks
from threadmark.memory.store.tables import assertion, attribute, evidence
from threadmark.memory.write.statement_digest import former_digests
from threadmark.memory.write.versions import overlap

__all__ = ["Fitting"]

Row = Mapping[str, Any]
_ROOTS = select(assertion.c.root_id, assertion.c.tenant_id, assertion.c.namespace_id, assertion.c.digest).where(
    assertion.c.root_id.in_(bindparam("keys", expanding=True))
)
_VERSIONS = select(assertion).where(assertion.c.root_id.in_(bindparam("keys", expanding=True)))
_OWNERS = select(assertion.c.assertion_id, assertion.c.tenant_id).where(
    assertion.c.assertion_id.in_(bindparam("keys", expanding=True))
)
_DECLARED = select(attribute.c.attribute_key, attribute.c.cardinality).where(
    attribute.c.tenant_id == bindparam("tenant_id"), attribute.c.attribute_key.in_(bindparam("keys", expanding=True))
)
_TO_DECLARE = select(staged_line.c.row).where(
    staged_line.c.import_number == bindparam("job"),
    staged_line.c.kind == StagedKind.ATTRIBUTE,
    staged_line.c.key.in_(bindparam("keys", expanding=True)),
)
_ONE = literal(Cardinality.ONE.value, literal_execute=True)
_HERE = assertion.c.namespace_id.in_(bindparam("namespaces", expanding=True))
_SPELLED = ("subject", "attribute", "spelled_labels")
_AS_SENT = [assertion.c[name] for name in _SPELLED]
_HELD_ONE = select(
    assertion.c.namespace_id,
    assertion.c.subject_key,
    assertion.c.attribute_key,
    assertion.c.valid_from,
    assertion.c.valid_to,
    assertion.c.assertion_id,
    *_AS_SENT,
).where(
    IS_HELD,
    _HERE,
    assertion.c.cardinality == _ONE,
    assertion.c.subject_key.in_(bindparam("keys", expanding=True)),
    assertion.c.attribute_key.in_(bindparam("attributes", expanding=True)),
)
# The words of the partial index, or SQLite would read the whole namespace.
_HELD_MANY = select(assertion.c.namespace_id, assertion.c.digest, assertion.c.assertion_id, *_AS_SENT).where(
    IS_HELD,
    _HERE,
    assertion.c.valid_to == literal(FAR_US, literal_execute=True),
    or_(assertion.c.cardinality.is_(None), assertion.c.cardinality != _ONE),
    assertion.c.digest.in_(bindparam("keys", expanding=True)),
)
_RECORDED = select(evidence.c.namespace_id, evidence.c.origin_key, evidence.c.digest, evidence.c.role).where(
    evidence.c.once == literal(1, literal_execute=True),
    evidence.c.namespace_id.in_(bindparam("namespaces", expanding=True)),
    evidence.c.origin_key.in_(bindparam("keys", expanding=True)),
)


class Fitting:
    """What is held beside the new rows of one transaction, and those that it has taken."""

    def __init__(self, connection: Connection, job: int, tenant_id: str, new: Iterable[tuple[str, Row]]) -> None:
        self._connection = connection
        given: dict[str, list[Row]] = {}
        for kind, row in new:
            given.setdefault(kind, []).append(row)
        stated, sources, after = (given.get(kind, []) for kind in ("assertion", "evidence", "succession"))
        roots = self._all(_ROOTS, [each["root_id"] for each in stated + sources])
        self._roots = {row.root_id: (row.tenant_id, row.namespace_id) for row in roots}
        self._renewed = self._all_renewed(stated, sources, {(row.root_id, row.digest) for row in roots})
        ids = [each[name] for each in after for name in ("older_id", "newer_id")]
        self._owners = {row[0]: row[1] for row in self._all(_OWNERS, ids)}
        self._cardinalities = self._all_cardinalities(job, tenant_id, stated)
        self._held_one = self._all_held_one(stated)
        self._held_many = self._all_held_many(stated)
        places = sorted({each["namespace_id"] for each in sources})
        keys = [each["origin_key"] for each in sources if each["once"]]
        self._recorded = {tuple(row) for row in self._all(_RECORDED, keys, namespaces=places)}

    def fitted(self, kind: str, row: dict[str, Any], path: str) -> dict[str, Any]:
        """The row as it is kept. Raises Refused where it contradicts what is held, or hangs on what is another's.

        A moment that is already recorded is kept as a further source of its own statement, as a write keeps it.
        """
        if kind == "assertion":
            self._check_root(row, path)
            self._check_cardinality(row, path)
            return row | {"hold": self._hold(row, path)}
        if kind == "evidence":
            self._check_root(row, path)
            return self._as_recorded(
                row | {"digest": self._renewed.get((row["root_id"], row["digest"]), row["digest"])}
            )
        if kind == "succession":
            for name in ("older_id", "newer_id"):
                if self._owners.get(row[name], row["tenant_id"]) != row["tenant_id"]:
                    raise Refused(f"{path}.{name}", "is an id that is taken")
        return row

    def declares(self, kind: str, row: Row) -> dict[str, Any] | None:
        """The declaration that a row needs and that is missing; the caller makes it.

        An export of an older version declares the folded name, for all of its spellings.
        """
        if kind != "assertion" or row["attribute_key"] is None or row["cardinality"] is None:
            return None
        if row["attribute_key"] in self._cardinalities:
            return None
        self._cardinalities[row["attribute_key"]] = row["cardinality"]
        return {name: row[name] for name in ("tenant_id", "attribute_key", "cardinality")}

    def _check_root(self, row: Row, path: str) -> None:
        own = (row["tenant_id"], row["namespace_id"])
        if self._roots.setdefault(row["root_id"], own) != own:
            raise Refused(f"{path}.root_id", "is an id that is taken in another namespace")

    def _check_cardinality(self, row: Row, path: str) -> None:
        if row["attribute_key"] is None or row["cardinality"] is None:
            return
        declared = self._cardinalities.get(row["attribute_key"])
        if declared not in {None, row["cardinality"]}:
            raise Refused(f"{path}.cardinality", f"of this attribute was declared here as {declared!r}")

    def _hold(self, row: Row, path: str) -> str:
        """Why the row is kept apart. Raises Refused for a belief that no write would put beside one that is held: of a
        single-valued attribute one that is true at the same time, of others the same words.

        One that is held under another encoding of the same name was written before encodings were compared: the
        newcomer waits for approval.
        """
        if (row["known_to"], row["hold"]) != (FAR_US, ""):
            return str(row["hold"])
        found: list[Row] = []
        if row["cardinality"] == Cardinality.ONE:
            why = "is a version of a single-valued attribute, of which memory {} is held here for the same time"
            if row["subject_key"] is not None and row["attribute_key"] is not None:
                held = self._held_one.setdefault(_attribute_of(row), [])
                found = [each for each in held if overlap(each, row)]
                if not found:
                    held.append(row)
        else:
            why = "says what memory {} says here already"
            if row["valid_to"] == FAR_US:
                key = (row["namespace_id"], row["digest"])
                held_once = self._held_many.setdefault(key, row)
                found = [] if held_once is row else [held_once]
        for each in found:
            if all(each[name] == row[name] for name in _SPELLED):
                raise Refused(path, why.format(each["assertion_id"]) + "; retract or erase one of the two")
        return Hold.CONFLICT if found else Hold.NONE

    def _as_recorded(self, row: dict[str, Any]) -> dict[str, Any]:
        moment = tuple(row[name] for name in ("namespace_id", "origin_key", "digest", "role"))
        if not row["once"]:
            return row
        if moment in self._recorded:
            return row | {"once": 0}
        self._recorded.add(moment)
        return row

    def _all_cardinalities(self, job: int, tenant_id: str, stated: Iterable[Row]) -> dict[str, str]:
        keys = [each["attribute_key"] for each in stated if each["cardinality"] is not None]
        waiting = self._all(_TO_DECLARE, [canonical([key]) for key in keys if key is not None], job=job)
        rows = [load(row[0]) for row in waiting]
        found = {row["attribute_key"]: row["cardinality"] for row in rows}
        return found | {row[0]: row[1] for row in self._all(_DECLARED, keys, tenant_id=tenant_id)}

    def _all_held_one(self, stated: Iterable[Row]) -> dict[Any, list[Row]]:
        one = [each for each in stated if each["cardinality"] == Cardinality.ONE and each["attribute_key"] is not None]
        names = {"namespaces": sorted({each["namespace_id"] for each in one})}
        names["attributes"] = sorted({each["attribute_key"] for each in one})
        found: dict[Any, list[Row]] = {}
        for row in self._all(_HELD_ONE, [each["subject_key"] for each in one], **names):
            found.setdefault(_attribute_of(row._mapping), []).append(row._mapping)
        return found

    def _all_held_many(self, stated: Iterable[Row]) -> dict[Any, Row]:
        many = [each for each in stated if each["cardinality"] != Cardinality.ONE]
        places = sorted({each["namespace_id"] for each in many})
        found = self._all(_HELD_MANY, [each["digest"] for each in many], namespaces=places)
        return {(row.namespace_id, row.digest): row._mapping for row in found}

    def _all_renewed(
        self, stated: Iterable[Row], sources: Iterable[Row], known: set[tuple[str, str]]
    ) -> dict[tuple[str, str], str]:
        """By statement and former digest, the digest that the statement has now."""
        known |= {(each["root_id"], each["digest"]) for each in stated}
        former = {(each["root_id"], each["digest"]) for each in sources} - known
        roots = {root_id for root_id, _ in former}
        versions = [row._mapping for row in self._all(_VERSIONS, roots)]
        versions += [each for each in stated if each["root_id"] in roots]
        return {
            (each["root_id"], digest): each["digest"]
            for each in versions
            for digest in former_digests(each)
            if (each["root_id"], digest) in former
        }

    def _all(self, query: Any, keys: Iterable[str | None], **values: Any) -> Sequence[Any]:
        wanted = sorted({key for key in keys if key is not None})
        return [row for part in chunks(wanted) for row in self._connection.execute(query, {"keys": part, **values})]


def _attribute_of(row: Row) -> tuple[Any, ...]:
    return (row["namespace_id"], row["subject_key"], row["attribute_key"])
