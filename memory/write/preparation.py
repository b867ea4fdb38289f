"""From a draft to what the database keeps of it: keys, digest, terms. Pure, and done before the writer's turn."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from threadmark.memory.errors import Refused
from threadmark.memory.model.admission import UNTRUSTED_TTL
from threadmark.memory.model.assertion import ITEM, TURN, Cardinality, Draft
from threadmark.memory.model.instants import FAR_US, from_us, to_us
from threadmark.memory.model.prepared import Prepared
from threadmark.memory.model.scope import Scope
from threadmark.memory.model.values import canonical
from threadmark.memory.pools import TEXTS
from threadmark.memory.text.dates import has_time_words
from threadmark.memory.text.identity import identity_key
from threadmark.memory.text.terms import folded, terms
from threadmark.memory.write.statement_digest import Statement, statement_digest

__all__ = ["dense_text", "named_speaker", "prepare", "prepare_all", "subject_key"]

_SPEAKER = re.compile(r"^([^\s:\[\]()][^:\n\[\]()]{0,40}): \S")


async def prepare_all(
    drafts: Sequence[Draft], scope: Scope, now: datetime, cardinalities: Sequence[Cardinality | None]
) -> list[tuple[Prepared, Cardinality | None]]:
    """Each draft prepared as by `prepare`, beside the event loop: a thousand take longer than others can wait."""

    def work() -> list[tuple[Prepared, Cardinality | None]]:
        pairs = zip(drafts, cardinalities, strict=True)
        return [(prepare(draft, scope, now, cardinality), cardinality) for draft, cardinality in pairs]

    return await TEXTS.run(work)


def prepare(draft: Draft, scope: Scope, now: datetime, cardinality: Cardinality | None) -> Prepared:
    """What the database keeps of `draft`, whose namespace must lie in `scope`.

    Raises Refused for a namespace outside the scope and for instants that name none.
    """
    if not scope.covers(scope.tenant_id, draft.namespace):
        raise Refused("namespace", "is outside the scope of the request")
    now_us = to_us(now, "now")
    observed = to_us(draft.observed_at, "observed_at")
    # A clock that runs ahead must not hide its statement from questions about now.
    valid_from = min(observed, now_us) if draft.valid_from is None else to_us(draft.valid_from, "valid_from")
    valid_to = None if draft.valid_to is None else to_us(draft.valid_to, "valid_to")
    if valid_to is not None and valid_to <= valid_from:
        raise Refused("valid_to", "is not after valid_from")
    speaker = _speaker(draft)
    return Prepared(
        draft=draft,
        tenant_id=scope.tenant_id,
        now=now_us,
        subject_key=subject_key(draft.kind, draft.subject),
        attribute_key=None if draft.attribute is None else identity_key(draft.attribute),
        value=canonical(draft.value),
        digest=_digest(draft, cardinality, valid_from, valid_to, now_us),
        origin_key=draft.origin.key,
        valid_from=valid_from,
        valid_to=valid_to,
        observed_at=observed,
        expires_at=_expiry(draft, now_us),
        speaker=None if speaker is None else folded(speaker),
        said_by=named_speaker(draft.kind, draft.text),
        says_when=has_time_words(draft.text),
        terms=" ".join(terms(_lexical_text(draft, speaker, observed))),
    )


def dense_text(text: str, speaker: str | None) -> str:
    """What the embedder is shown."""
    if speaker is None or folded(text).startswith(f"{speaker}:"):
        return text
    return f"{speaker}: {text}"


def _lexical_text(draft: Draft, speaker: str | None, observed: int) -> str:
    at = from_us(observed).astimezone(UTC)
    parts = [f"{at.day} {at:%B} {at.year}", dense_text(draft.text, speaker and folded(speaker))]
    if draft.subject is not None and draft.attribute is not None:
        parts += [each for each in (draft.subject, draft.attribute) if folded(each) not in folded(draft.text)]
    return " ".join(parts)


def _speaker(draft: Draft) -> str | None:
    if draft.origin.actor is not None:
        return draft.origin.actor
    return _head(draft.kind, draft.text)


def named_speaker(kind: str, text: str) -> str | None:
    """Who a raw turn says that it is by (`Ada: good morning`), as names are compared."""
    head = _head(kind, text)
    return None if head is None else identity_key(head)


def _head(kind: str, text: str) -> str | None:
    found = _SPEAKER.match(text) if kind == TURN else None
    return found[1] if found else None


def _expiry(draft: Draft, now_us: int) -> int:
    if draft.expires_at is not None:
        return to_us(draft.expires_at, "expires_at")
    return now_us + int(UNTRUSTED_TTL.total_seconds() * 1_000_000) if draft.trust.is_untrusted else FAR_US


def subject_key(kind: str, subject: str | None) -> str | None:
    """A subject as it is compared; the key of an item, which is no subject, as JSON."""
    if subject is None:
        return None
    key = identity_key(subject)
    return canonical(key) if kind == ITEM else key


def _digest(draft: Draft, cardinality: Cardinality | None, valid_from: int, valid_to: int | None, now_us: int) -> str:
    is_dated = cardinality is Cardinality.EVENT or (cardinality is not Cardinality.ONE and draft.valid_from is not None)
    said = Statement(
        kind=draft.kind,
        text=draft.text,
        subject=draft.subject,
        attribute=draft.attribute,
        value=draft.value,
        moment=draft.origin.key,
        known_from=now_us,
        valid_from=valid_from if is_dated else None,
        valid_to=None if cardinality is Cardinality.ONE else valid_to,
    )
    return statement_digest(said)
