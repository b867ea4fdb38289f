"""How much a unit matters, and which units must not be lost."""

import math
from collections.abc import Collection

from threadmark.compaction.atoms import AtomClass
from threadmark.compaction.clauses import ClauseClass
from threadmark.compaction.input.source import Role
from threadmark.compaction.ledger.collect import Unit
from threadmark.compaction.ledger.rules import CRITICAL_ATOMS, CRITICAL_CLAUSES
from threadmark.compaction.ledger.terms import UnitKind

__all__ = ["atom_weight", "clause_weight", "is_critical", "salience"]


_CLAUSE_WEIGHTS: dict[str, float] = {
    ClauseClass.CONSTRAINT: 10.0,
    ClauseClass.DECISION: 9.0,
    ClauseClass.COMMITMENT: 8.0,
    ClauseClass.CORRECTION: 8.0,
    ClauseClass.OPEN_QUESTION: 4.0,
}
_ATOM_WEIGHTS: dict[str, float] = {
    AtomClass.MONEY: 4.0,
    AtomClass.DATE: 4.0,
    AtomClass.REFERENCE: 4.0,
    AtomClass.EMAIL: 4.0,
    AtomClass.UUID: 3.0,
    AtomClass.PATH: 3.0,
    AtomClass.PERCENT: 3.0,
    AtomClass.PHONE: 3.0,
    AtomClass.ERROR: 3.0,
    AtomClass.URL: 2.5,
    AtomClass.NAME: 2.5,
    AtomClass.TIME: 2.5,
    AtomClass.VERSION: 2.0,
    AtomClass.HOST: 2.0,
    AtomClass.COMMAND: 2.0,
    AtomClass.QUOTED: 1.5,
    AtomClass.QUANTITY: 2.0,
    AtomClass.HANDLE: 2.0,
    AtomClass.HASH: 1.5,
    AtomClass.CODE: 1.0,
    AtomClass.NUMBER: 0.5,
}
_ROLE_FACTORS = {Role.HUMAN: 3.0, Role.SYSTEM: 2.0, Role.AI: 1.0, Role.TOOL: 0.5}


def clause_weight(cls: str, role: Role) -> float:
    """The weight of a clause that is said in this role."""
    return _CLAUSE_WEIGHTS[cls] * _ROLE_FACTORS[role]


def atom_weight(cls: str, role: Role) -> float:
    """The weight of an atom that is said in this role."""
    return _ATOM_WEIGHTS[cls] * _ROLE_FACTORS[role]


def salience(unit: Unit) -> float:
    """Its weight, raised a little by every repetition."""
    if unit.key.unit is UnitKind.CLAUSE:
        weight = clause_weight(unit.key.cls, unit.role)
    elif unit.key.unit is UnitKind.ATOM:
        weight = atom_weight(unit.key.cls, unit.role)
    else:
        return 0.0
    repeated = 1 + math.log10(len(unit.sources)) if len(unit.sources) > 1 else 1
    return round(weight * repeated * (2 if unit.marked else 1), 3)


def is_critical(
    unit: Unit,
    critical_atoms: Collection[str] = CRITICAL_ATOMS,
    critical_clauses: Collection[str] = CRITICAL_CLAUSES,
) -> bool:
    """Whether losing it must not pass unnoticed: said by a person and of a critical class, or marked."""
    if unit.key.unit is UnitKind.CLAUSE:
        return unit.marked or (unit.role is Role.HUMAN and unit.key.cls in critical_clauses)
    if unit.key.unit is UnitKind.ATOM:
        return (unit.marked or unit.role is Role.HUMAN) and unit.key.cls in critical_atoms
    return False
