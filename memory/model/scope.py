"""Whose memory: a tenant and a list of labels. A scope covers its own namespace and those below it, label by label."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from threadmark.memory.errors import Refused, ScopeRefused
from threadmark.memory.model.values import canonical, check_label
from threadmark.memory.text.identity import identity_labels

__all__ = ["LABEL_COUNT_MAX", "Namespace", "Scope", "is_below", "namespace_key", "namespace_of"]

LABEL_COUNT_MAX = 12
Namespace = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What may be seen: everything of `tenant_id` at `namespace` or below it.

    The empty namespace is "all of my tenant", and never more. The tenant comes from the caller's credential.
    """

    tenant_id: str
    namespace: Namespace

    def __post_init__(self) -> None:
        # A tenant 1 and a tenant "1" are different matches for an index; here only one of them exists.
        if not isinstance(self.tenant_id, str):
            raise ScopeRefused("tenant_id", "is not a text")
        try:
            check_label(self.tenant_id, "tenant_id")
            object.__setattr__(self, "namespace", namespace_of(self.namespace))
        except ScopeRefused:
            raise
        except Refused as error:
            raise ScopeRefused(error.path, error.why) from error

    def covers(self, tenant_id: str, namespace: Sequence[str]) -> bool:
        """Whether `namespace` of `tenant_id` is this scope's own or below it; boundaries are between labels."""
        return tenant_id == self.tenant_id and is_below(namespace, self.namespace)

    @property
    def key(self) -> str:
        """The one text of this scope where texts are compared for equality."""
        return canonical([self.tenant_id, *identity_labels(self.namespace)])

    def ancestors(self) -> Iterator["Scope"]:
        """Every scope that covers this one: the tenant's whole, down to itself."""
        for depth in range(len(self.namespace) + 1):
            yield Scope(tenant_id=self.tenant_id, namespace=self.namespace[:depth])


def is_below(labels: Sequence[str], prefix: Sequence[str]) -> bool:
    """Whether a namespace is `prefix` or lies below it."""
    return identity_labels(labels[: len(prefix)]) == identity_labels(prefix)


def namespace_key(labels: Sequence[str]) -> str:
    """The one text by which a namespace, or a prefix of one, is found."""
    return canonical(list(identity_labels(labels)))


def namespace_of(labels: object, path: str = "namespace") -> Namespace:
    """The namespace that a list of labels names. Raises ScopeRefused for anything else, a text above all."""
    if not isinstance(labels, list | tuple):
        raise ScopeRefused(path, "is not a list of labels")
    if len(labels) > LABEL_COUNT_MAX:
        raise ScopeRefused(path, f"has {len(labels)} labels; at most {LABEL_COUNT_MAX} are kept")
    try:
        return tuple(check_label(label, f"{path}[{at}]") for at, label in enumerate(labels))
    except Refused as error:
        raise ScopeRefused(error.path, error.why) from error
