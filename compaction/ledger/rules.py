"""What a policy says about the account: which classes are critical, and which are left out."""

import msgspec

from threadmark.compaction.atoms.atom import AtomClass
from threadmark.compaction.clauses.clause import ClauseClass

__all__ = ["CRITICAL_ATOMS", "CRITICAL_CLAUSES", "Rules"]

#: What a person bound others to; only words of people count, so that no page or tool can plant a rule.
CRITICAL_CLAUSES = frozenset(
    {ClauseClass.CONSTRAINT, ClauseClass.DECISION, ClauseClass.COMMITMENT, ClauseClass.CORRECTION}
)
CRITICAL_ATOMS = frozenset(
    {
        AtomClass.MONEY,
        AtomClass.PERCENT,
        AtomClass.DATE,
        AtomClass.REFERENCE,
        AtomClass.UUID,
        AtomClass.PATH,
        AtomClass.EMAIL,
    }
)


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy says about the account."""

    critical_atoms: frozenset[str] = frozenset(CRITICAL_ATOMS)
    critical_clauses: frozenset[str] = frozenset(CRITICAL_CLAUSES)
    excluded_classes: frozenset[str] = frozenset()
