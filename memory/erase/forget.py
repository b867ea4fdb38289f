"""What to erase, and how far an erasure is. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from threadmark.memory.errors import Refused
from threadmark.memory.model.admission import Selector
from threadmark.memory.model.instants import from_us, to_us
from threadmark.memory.model.scope import Namespace, namespace_of
from threadmark.memory.model.values import canonical, check_label

__all__ = ["Erasure", "Forget", "forget_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """What to erase: exactly one of a namespace, a subject, a source, what has expired, or the whole tenant.

    A source is erased with everything that rests on it, also what another source supports as well: the statement was
    read in the erased text. Raises Refused when it names nothing or two things.
    """

    namespace: Namespace | None = None
    subject: str | None = None
    source: Selector | None = None
    expired_by: datetime | None = None
    tenant: bool = False

    def __post_init__(self) -> None:
        parts = (self.namespace, self.subject, self.source, self.expired_by)
        if sum(part is not None for part in parts) + self.tenant != 1:
            raise Refused("selector", "names none or several of namespace, subject, source, expired_by and tenant")
        if self.namespace is not None and not namespace_of(self.namespace):
            raise Refused("namespace", "is empty; say `tenant` to erase everything")
        if self.subject is not None:
            check_label(self.subject, "subject")
        if self.source is not None and not self.source.parts():
            raise Refused("source", "names nothing")

    def spelled(self) -> str:
        """Its JSON, for the job's row."""
        source = None if self.source is None else self.source.parts()
        labels = None if self.namespace is None else list(self.namespace)
        expired = None if self.expired_by is None else to_us(self.expired_by, "expired_by")
        parts = {"namespace": labels, "subject": self.subject, "source": source, "expired_by": expired}
        return canonical(parts | {"tenant": self.tenant})


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """An erasure and what it removed so far, by table; `entries` are those of the index."""

    erasure_id: str
    is_done: bool
    created_at: datetime
    done_at: datetime | None
    counts: dict[str, int] = field(default_factory=dict)


def forget_of(spelled: Mapping[str, Any]) -> Forget:
    """What `spelled` spells."""
    source = spelled["source"]
    labels = spelled["namespace"]
    expired = spelled["expired_by"]
    return Forget(
        namespace=None if labels is None else tuple(labels),
        subject=spelled["subject"],
        source=None if source is None else Selector(**source),
        expired_by=None if expired is None else from_us(expired),
        tenant=spelled["tenant"],
    )
