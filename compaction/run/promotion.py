"""Promotion: what a compaction drops and a person said may matter beyond the thread, and goes to memory first."""

import hashlib
from collections.abc import Iterable

import msgspec

from threadmark.compaction.clauses import ClauseClass
from threadmark.compaction.input.source import Role, Trust
from threadmark.compaction.ledger import Judged, RowKey, Source, Status, UnitKind
from threadmark.compaction.ledger.collect import Unit
from threadmark.compaction.ledger.weights import is_critical, salience

__all__ = ["Promotion", "promotions_of"]

_CLASSES = frozenset(ClauseClass) - {ClauseClass.OPEN_QUESTION}
_ROLES = frozenset({Role.HUMAN, Role.AI})  #: a page or a tool plants nothing in memory


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
        return RowKey(UnitKind.CLAUSE if self.cls in _CLASSES else UnitKind.ATOM, self.cls, self.canon)


def promotions_of(judged: Judged, thread_ref: str, count_max: int) -> tuple[Promotion, ...]:
    """The dropped units worth keeping, by salience: clauses of people and models, and critical values of people."""
    dropped = [unit for key, unit in judged.units.items() if judged.outcomes[key].status is Status.DROPPED]
    worthy = sorted(filter(_is_worthy, dropped), key=lambda unit: (-salience(unit), unit.sources[0]))
    return tuple(_promotions(worthy[:count_max], thread_ref))


def _is_worthy(unit: Unit) -> bool:
    if unit.role not in _ROLES:
        return False
    if unit.key.unit is UnitKind.CLAUSE:
        return unit.key.cls in _CLASSES
    return is_critical(unit)


def _promotions(units: Iterable[Unit], thread_ref: str) -> Iterable[Promotion]:
    for unit in units:
        name = "\0".join((thread_ref, *unit.key)).encode("utf-8", "surrogatepass")
        yield Promotion(
            promotion_id=hashlib.sha256(name).hexdigest()[:32],
            text=unit.text,
            cls=unit.key.cls,
            canon=unit.key.canon,
            role=unit.role,
            trust=unit.trust,
            sources=tuple(unit.sources),
            salience=salience(unit),
        )
