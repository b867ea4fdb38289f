"""Who may say what: untrusted words are kept apart, never change what a person said, and fade. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from threadmark.memory.model.provenance import Trust

__all__ = ["UNTRUSTED_TTL", "Hold", "Selector", "hold_for", "may_supersede"]

#: How long an untrusted assertion lasts without confirmation.
UNTRUSTED_TTL = timedelta(days=30)


class Hold(StrEnum):
    """Why an assertion is stored and not recalled."""

    NONE = ""
    CONFLICT = "conflict"  #: it would have overruled a more trusted source
    TENANT_WIDE = "tenant_wide"  #: an untrusted statement for the whole tenant
    SOURCE = "source"  #: its source is quarantined


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Names sources: every part that is given must be equal."""

    thread_ref: str | None = None
    run_ref: str | None = None
    seq: int | None = None
    message_ref: str | None = None
    actor: str | None = None

    def parts(self) -> dict[str, str | int]:
        """The parts that are given."""
        names = ("thread_ref", "run_ref", "seq", "message_ref", "actor")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def may_supersede(new: Trust, old: Trust) -> bool:
    """Whether a word of `new` trust may end the belief in one of `old` trust."""
    if new.is_untrusted:
        return old.is_untrusted
    return not (new is Trust.AGENT and old is Trust.OPERATOR)


def hold_for(trust: Trust, namespace: tuple[str, ...], overruled: Iterable[Trust], *, source_held: bool) -> Hold:
    """Why a new assertion must wait for approval; `Hold.NONE` when it need not."""
    if source_held:
        return Hold.SOURCE
    if trust.is_untrusted and not namespace:
        return Hold.TENANT_WIDE
    if any(not may_supersede(trust, old) for old in overruled):
        return Hold.CONFLICT
    return Hold.NONE
