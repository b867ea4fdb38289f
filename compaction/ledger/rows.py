"""Rows of a ledger: one unit of the covered range, or one thing that the summary says and no source does."""

import hashlib
from typing import NamedTuple

import msgspec

from threadmark.compaction.input.source import Role, Trust
from threadmark.compaction.ledger.terms import Reason, Status, UnitKind

__all__ = ["Place", "Row", "RowKey", "Source", "row_id_of"]


class Source(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """An exact span of an original entry, in code points of the part's text."""

    seq: int
    message: int
    part: int
    start: int
    end: int


class Place(NamedTuple):
    """Where in the new view a unit is: in a summary segment, or in an entry that stays; with its span."""

    segment_id: str | None
    seq: int | None
    message: int
    part: int
    start: int
    end: int


class RowKey(NamedTuple):
    """What makes a unit the same unit in another compaction of the thread."""

    unit: UnitKind
    cls: str
    canon: str


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One line of the account.

    `text` is the unit as its first source writes it. `sources` are all its occurrences in the covered range, in order;
    an introduced row has none. An erased row has lost its text and its salt and keeps its digest and, in
    `status_before`, what it was when the ledger was sealed: the chain still verifies.
    A row whose words were kept long enough has digests in their place, keeps its salt, and goes on under the name
    (`named`) that its words gave it.
    """

    unit: UnitKind
    cls: str
    canon: str
    text: str
    status: Status
    sources: tuple[Source, ...] = ()
    reason: Reason | None = None
    critical: bool = False
    role: Role | None = None
    trust: Trust | None = None
    salience: float = 0.0
    negative: bool | None = None  #: polarity of a clause
    flipped: bool = False  #: the view says the opposite
    kept_in: Place | None = None
    altered_to: str | None = None
    superseded_by: str | None = None  #: normal form of the later value
    promotion_id: str | None = None
    survived: tuple[str, ...] = ()  #: earlier compactions of this range through which it stayed
    lost_at: str | None = None  #: the first compaction that no longer had it
    status_before: Status | None = None
    salt: str = ""
    digest: str = ""  #: SHA-256 of salt, normal form and text
    aside: str = ""  #: what was replaced or altered to, and the promotion: two SHA-256 with the salt, or `-`
    named: str = ""

    @property
    def key(self) -> RowKey:
        """The unit's identity."""
        return RowKey(self.unit, self.cls, self.canon)

    @property
    def row_id(self) -> str:
        """A name for the row within its ledger that does not change when statuses do."""
        return self.named or row_id_of(self.key)


def row_id_of(key: RowKey) -> str:
    """The name that the row of a unit has in every ledger."""
    return hashlib.sha256("\0".join(key).encode()).hexdigest()[:24]
