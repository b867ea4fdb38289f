"""Who changes a belief, and when."""

from datetime import datetime
from typing import Any

from threadmark.memory.model.instants import to_us
from threadmark.memory.model.provenance import Trust

__all__ = ["Change", "by"]


class Change:
    """Who changes a belief, and when."""

    __slots__ = ("by", "now", "trust")

    def __init__(self, *, by: str, now: datetime, trust: Trust = Trust.USER) -> None:
        self.by = by
        self.now = now
        self.trust = trust


def by(change: Change) -> dict[str, Any]:
    """The change as the arguments of a unit of work."""
    return {"by": change.by, "trust": change.trust, "now": to_us(change.now, "now")}
