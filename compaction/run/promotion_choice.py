"""Promotion: what a compaction drops and a person said may matter beyond the thread, and goes to memory first."""

import hashlib
from collections.abc import Iterable

from threadmark.compaction.input.source import Role
from threadmark.compaction.ledger import Judged, Status, UnitKind
from threadmark.compaction.ledger.collect import Unit
from threadmark.compaction.ledger.weights import is_critical, salience
from threadmark.compaction.model.promotion import PROMOTED_CLASSES, Promotion

__all__ = ["promotions_of"]

_ROLES = frozenset({Role.HUMAN, Role.AI})  #: a page or a tool plants nothing in memory


def promotions_of(judged: Judged, thread_ref: str, count_max: int) -> tuple[Promotion, ...]:
    """The dropped units worth keeping, by salience: clauses of people and models, and critical values of people."""
    dropped = [unit for key, unit in judged.units.items() if judged.outcomes[key].status is Status.DROPPED]
    worthy = sorted(filter(_is_worthy, dropped), key=lambda unit: (-salience(unit), unit.sources[0]))
    return tuple(_promotions(worthy[:count_max], thread_ref))


def _is_worthy(unit: Unit) -> bool:
    if unit.role not in _ROLES:
        return False
    if unit.key.unit is UnitKind.CLAUSE:
        return unit.key.cls in PROMOTED_CLASSES
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
