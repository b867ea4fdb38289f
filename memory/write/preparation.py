"""From a draft to what the database keeps of it: keys, digest, terms. Pure, and done before the writer's turn."""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from threadmark.memory.errors import Refused
from threadmark.memory.model.admission import UNTRUSTED_TTL
from threadmark.memory.model.assertion import ITEM, TURN, Cardinality, Draft
from threadmark.memory.model.instants import FAR_US, from_us, to_us
from threadmark.memory.model.scope import Scope
from threadmark.memory.model.values import canonical
from threadmark.memory.pools import TEXTS
from threadmark.memory.recall.dates import has_time_words
from threadmark.memory.text.terms import folded, terms

__all__ = ["Prepared", "dense_text", "prepare", "prepare_all"]

_SPEAKER = re.compile(r"^([^\s:\[\]()][^:\n\[\]()]{0,40}): \S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A draft with everything that can be known of it without looking at the database. Instants in microseconds."""

    draft: Draft
    tenant_id: str
    now: int
    subject_key: str | None
    attribute_key: str | None
    value: str
    digest: str
    origin_key: str | None
    valid_from: int
    valid_to: int | None
    observed_at: int
    expires_at: int
    speaker: str | None
    says_when: bool
    terms: str


async def prepare_all(
    drafts: Sequence[Draft], scope: Scope, now: datetime, cardinalities: Sequence[Cardinality | None]
) -> list[tuple[Prepared, Cardinality | None]]:
    """Each draft prepared as by `prepare`, beside the event loop: a thousand take longer than others can wait."""

    def work() -> list[tuple[Prepared, Cardinality | None]]:
        pairs = zip(drafts, cardinalities, strict=True)
        return [(prepare(draft, scope, now, cardinality), cardinality) for draft, cardinality in pairs]

    return await asyncio.get_running_loop().run_in_executor(TEXTS, work)


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
        subject_key=_subject_key(draft),
        attribute_key=None if draft.attribute is None else folded(draft.attribute),
        value=canonical(draft.value),
        digest=_digest(draft, cardinality, valid_from, valid_to, now_us),
        origin_key=draft.origin.key,
        valid_from=valid_from,
        valid_to=valid_to,
        observed_at=observed,
        expires_at=_expiry(draft, now_us),
        speaker=None if speaker is None else folded(speaker),
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
    found = _SPEAKER.match(draft.text) if draft.kind == TURN else None
    return found[1] if found else None


def _expiry(draft: Draft, now_us: int) -> int:
    if draft.expires_at is not None:
        return to_us(draft.expires_at, "expires_at")
    return now_us + int(UNTRUSTED_TTL.total_seconds() * 1_000_000) if draft.trust.is_untrusted else FAR_US


def _subject_key(draft: Draft) -> str | None:
    """A subject in one spelling; the key of an item to the letter."""
    if draft.subject is None:
        return None
    return canonical(draft.subject) if draft.kind == ITEM else folded(draft.subject)


def _digest(draft: Draft, cardinality: Cardinality | None, valid_from: int, valid_to: int | None, now_us: int) -> str:
    """The same for the same statement, whoever makes it.

    A statement about an attribute is its value; a text is its words, whatever their case and spacing. A raw turn, an
    item, an event and a statement with a validity of its own are another each time.
    """
    parts: list[object]
    if draft.attribute is not None and draft.subject is not None:
        said = draft.value if draft.value is not None else folded(draft.text)
        parts = ["attribute", folded(draft.subject), folded(draft.attribute), said]
    else:
        parts = ["text", folded(draft.text)]
    if draft.kind == TURN:
        parts.append(["turn", draft.origin.key])
    if draft.kind == ITEM:
        parts = ["item", draft.subject, draft.value, now_us]
    if cardinality is Cardinality.EVENT or (cardinality is not Cardinality.ONE and draft.valid_from is not None):
        parts.append(["from", valid_from])
    if cardinality is not Cardinality.ONE and valid_to is not None:
        parts.append(["to", valid_to])
    return hashlib.sha256(canonical(parts).encode()).hexdigest()
