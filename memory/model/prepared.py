"""A draft on its way to the database."""

from dataclasses import dataclass

from threadmark.memory.model.assertion import Draft

__all__ = ["Prepared"]


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
    speaker: str | None  #: folded: for ranking
    said_by: str | None  #: the speaker that a raw turn names in its words, as names are compared
    says_when: bool
    terms: str
