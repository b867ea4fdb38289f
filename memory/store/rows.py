"""Rows of the database as values of the domain, and back. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from threadmark.memory.model.assertion import Assertion, Cardinality, Closing
from threadmark.memory.model.instants import FAR_US, from_us, to_us, until
from threadmark.memory.model.prepared import Prepared
from threadmark.memory.model.provenance import Evidence, Origin, Role, Trust
from threadmark.memory.model.scope import Namespace
from threadmark.memory.model.values import canonical, load
from threadmark.memory.text.identity import identity_key, identity_labels

__all__ = ["assertion_of", "evidence_of", "evidence_row", "origin_columns", "spelled_labels", "version_row"]


def version_row(item: Prepared, assertion_id: str, number: int, cardinality: Cardinality | None) -> dict[str, Any]:
    """The row of a draft; the caller places it in time and in its conversation."""
    draft = item.draft
    return {
        "assertion_id": assertion_id,
        "root_id": assertion_id,
        "tenant_id": item.tenant_id,
        "namespace_id": number,
        "spelled_labels": spelled_labels(draft.namespace),
        "text": canonical(draft.text),
        "kind": draft.kind,
        "subject": draft.subject,
        "attribute": draft.attribute,
        "subject_key": item.subject_key,
        "attribute_key": item.attribute_key,
        "value": item.value,
        "cardinality": cardinality,
        "valid_from": item.valid_from,
        "valid_to": FAR_US if item.valid_to is None else item.valid_to,
        "known_from": item.now,
        "known_to": FAR_US,
        "observed_at": item.observed_at,
        "expires_at": item.expires_at,
        "confidence": float(draft.confidence),
        "trust": draft.trust,
        "asserted_by": draft.asserted_by,
        "extractor": draft.extractor,
        "hold": "",
        "closing": None,
        "reason": None,
        "digest": item.digest,
        "speaker": item.speaker,
        "said_by": item.said_by,
        "thread_ref": draft.origin.thread_ref,
        "run_ref": draft.origin.run_ref,
        "session": None,
        "previous_id": None,
        "says_when": item.says_when,
        "terms": item.terms,
    }


def evidence_row(item: Prepared, root_id: str, number: int, role: Role, at: int) -> dict[str, Any]:
    """The row of a draft's moment, as a source of the statement `root_id`."""
    draft, origin = item.draft, item.draft.origin
    return {
        "root_id": root_id,
        "tenant_id": item.tenant_id,
        "namespace_id": number,
        "digest": item.digest,
        "origin_key": item.origin_key,
        "role": role,
        "trust": draft.trust,
        "observed_at": item.observed_at,
        "recorded_at": at,
        "asserted_by": draft.asserted_by,
        "extractor": draft.extractor,
        **origin_columns(origin),
    }


def spelled_labels(labels: Namespace) -> str | None:
    """Its namespace's labels as they were sent, for a row; None where they are spelled as they are compared."""
    return None if identity_labels(labels) == labels else canonical(list(labels))


def origin_columns(origin: Origin) -> dict[str, Any]:
    """The columns of an origin."""
    return {
        "thread_ref": origin.thread_ref,
        "run_ref": origin.run_ref,
        "seq": origin.seq,
        "message_ref": origin.message_ref,
        "actor": origin.actor,
        "actor_key": None if origin.actor is None else identity_key(origin.actor),
        "origin_at": None if origin.at is None else to_us(origin.at, "source.at"),
        "content_hash": origin.content_hash,
        "char_from": origin.char_from,
        "char_to": origin.char_to,
        "quote": None if origin.quote is None else canonical(origin.quote),
    }


def evidence_of(row: Mapping[str, Any]) -> Evidence:
    """The source that a row keeps."""
    return Evidence(
        evidence_id=row["evidence_id"],
        role=Role(row["role"]),
        trust=Trust(row["trust"]),
        observed_at=from_us(row["observed_at"]),
        recorded_at=from_us(row["recorded_at"]),
        asserted_by=row["asserted_by"],
        extractor=row["extractor"],
        origin=Origin(
            thread_ref=row["thread_ref"],
            run_ref=row["run_ref"],
            seq=row["seq"],
            message_ref=row["message_ref"],
            actor=row["actor"],
            at=None if row["origin_at"] is None else from_us(row["origin_at"]),
            content_hash=row["content_hash"],
            char_from=row["char_from"],
            char_to=row["char_to"],
            quote=None if row["quote"] is None else load(row["quote"]),
        ),
    )


def assertion_of(
    row: Mapping[str, Any],
    provenance: Sequence[Evidence] = (),
    supersedes: Sequence[str] = (),
    superseded_by: str | None = None,
) -> Assertion:
    """The assertion that a row (joined with its namespace's `labels`) keeps."""
    return Assertion(
        assertion_id=row["assertion_id"],
        tenant_id=row["tenant_id"],
        namespace=tuple(load(row["labels"])),
        text=load(row["text"]),
        kind=row["kind"],
        subject=row["subject"],
        attribute=row["attribute"],
        value=load(row["value"]),
        cardinality=None if row["cardinality"] is None else Cardinality(row["cardinality"]),
        valid_from=from_us(row["valid_from"]),
        valid_to=until(row["valid_to"]),
        known_from=from_us(row["known_from"]),
        known_to=until(row["known_to"]),
        observed_at=from_us(row["observed_at"]),
        expires_at=until(row["expires_at"]),
        confidence=row["confidence"],
        trust=Trust(row["trust"]),
        asserted_by=row["asserted_by"],
        extractor=row["extractor"],
        hold=row["hold"],
        closing=None if row["closing"] is None else Closing(row["closing"]),
        reason=None if row["reason"] is None else load(row["reason"]),
        supersedes=tuple(supersedes),
        superseded_by=superseded_by,
        provenance=tuple(provenance),
    )
