"""Scopes: what a key may do."""

from collections.abc import Iterable
from enum import StrEnum

__all__ = ["Scope", "implied"]


class Scope(StrEnum):
    """What a key may do in its tenant."""

    READ = "read"  #: look at everything but keys and metrics
    RUN = "run"  #: open threads, start and cancel runs
    APPROVE = "approve"  #: answer for a person: waits, steps in doubt
    ADMIN = "admin"  #: all of the above, keys and metrics
    OPERATOR = "operator"  #: admin, and the keys of every tenant


_IMPLIED: dict[Scope, frozenset[Scope]] = {
    Scope.READ: frozenset({Scope.READ}),
    Scope.RUN: frozenset({Scope.RUN}),
    Scope.APPROVE: frozenset({Scope.APPROVE}),
    Scope.ADMIN: frozenset(Scope) - {Scope.OPERATOR},
    Scope.OPERATOR: frozenset(Scope),
}


def implied(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """All that these scopes allow."""
    return frozenset().union(*(_IMPLIED[scope] for scope in scopes))
