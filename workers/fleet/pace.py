"""How fast a worker works: its bounds and its intervals."""

from dataclasses import dataclass

__all__ = ["Pace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How many turns at once, how often to look, and how long a stop may take (seconds)."""

    turn_count_max: int = 64
    orphan_count_max: int = 16  #: orphans taken over in one sweep, so that a dead worker's load spreads
    sweep_s: float = 1.0
    probe_s: float = 0.25  #: how often to look for workers that died
    grace_s: float = 2.0
