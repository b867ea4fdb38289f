"""A statement on its way to memory, with where it came from."""

import msgspec

from threadmark.compaction.clauses import ClauseClass
from threadmark.compaction.input.source import Role, Trust
from threadmark.compaction.ledger import RowKey, Source, UnitKind

__all__ = ["PROMOTED_CLASSES", "Promotion"]

#: Of clauses; a question that stays open belongs to its thread.
PROMOTED_CLASSES = frozenset(ClauseClass) - {ClauseClass.OPEN_QUESTION}


class Promotion(msgspec.Struct, frozen=True, kw_only=True):
    """A statement for memory, with where it came from. The same statement of the same thread has the same id."""

    promotion_id: str
    text: str
    cls: str
    canon: str
    role: Role
    trust: Trust
    sources: tuple[Source, ...]
    salience: float

    @property
    def key(self) -> RowKey:
        """The ledger's row."""
        return RowKey(UnitKind.CLAUSE if self.cls in PROMOTED_CLASSES else UnitKind.ATOM, self.cls, self.canon)
