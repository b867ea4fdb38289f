"""What journals say about takeovers: which runs a killed worker held, and when another began their next turn. Pure."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

__all__ = ["Kill", "Takeover", "report", "takeovers"]

SLOWEST_COUNT = 5
Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """A worker was killed at `at_s` (epoch seconds). `lock_down_s`: until another session saw its lock down."""

    pid: int
    at_s: float
    lock_down_s: float
    survivor_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """A run that a killed worker held; `lag_s` until its next turn, None where it never had one."""

    kill: Kill
    thread: int
    lag_s: float | None
    by: str  #: the worker that took it over


def takeovers(kills: Sequence[Kill], journals: Sequence[Sequence[Entry]]) -> list[Takeover]:
    """Every run that a killed worker held when it was killed."""
    return [
        found
        for kill in kills
        for thread, journal in enumerate(journals)
        if (found := _takeover(kill, thread, journal)) is not None
    ]


def report(kills: Sequence[Kill], found: Sequence[Takeover]) -> str:
    """The figures, and the slowest."""
    lags_s = sorted(each.lag_s for each in found if each.lag_s is not None)
    if not lags_s:
        return f"{len(found)} runs were held by the killed, none was taken over"
    locks_s = sorted(each.lock_down_s for each in kills)
    met_count = len({each.kill.at_s for each in found})
    rows = [
        f"{met_count} of {len(kills)} kills met {len(found)} runs; "
        f"{len(found) - len(lags_s)} of them were never taken over",
        f"from SIGKILL to the next turn: p50 {_quantile(lags_s, 0.5):.2f} s, p95 {_quantile(lags_s, 0.95):.2f} s, "
        f"slowest {lags_s[-1]:.2f} s",
        f"from SIGKILL until another session sees the lock down: p50 {_quantile(locks_s, 0.5):.2f} s, "
        f"p95 {_quantile(locks_s, 0.95):.2f} s, slowest {locks_s[-1]:.2f} s",
        f"ratio of the medians {statistics.median(lags_s) / statistics.median(locks_s):.1f}, "
        f"of the p95 {_quantile(lags_s, 0.95) / _quantile(locks_s, 0.95):.1f}",
    ]
    slowest = sorted(found, key=lambda each: -(each.lag_s or 0))[:SLOWEST_COUNT]
    rows += [
        f"  {each.lag_s or 0:.2f} s: thread {each.thread}, killed {each.kill.pid} at {each.kill.at_s:.2f} with "
        f"{each.kill.survivor_count} left (lock down after {each.kill.lock_down_s:.2f} s), by {each.by}"
        for each in slowest
    ]
    return "\n".join(rows)


def _takeover(kill: Kill, thread: int, journal: Sequence[Entry]) -> Takeover | None:
    before = [each for each in journal if _at_s(each) < kill.at_s]
    turns = [each for each in before if each["kind"] == "turn_started"]
    if not turns or _pid_of(turns[-1]) != kill.pid:
        return None
    if any(each["kind"] == "run_settled" for each in before if each["seq"] > turns[-1]["seq"]):
        return None
    later = [
        each for each in journal if each["seq"] > turns[-1]["seq"] and each["kind"] in ("turn_started", "run_settled")
    ]
    # What the dead had already sent was committed: the run had ended.
    if later and later[0]["kind"] == "run_settled":
        return None
    if not later:
        return Takeover(kill=kill, thread=thread, lag_s=None, by="")
    return Takeover(kill=kill, thread=thread, lag_s=_at_s(later[0]) - kill.at_s, by=_worker_of(later[0]))


def _worker_of(turn: Entry) -> str:
    return str((turn.get("payload") or turn)["worker_id"])


def _pid_of(turn: Entry) -> int:
    return int(_worker_of(turn).split("-")[-2])


def _at_s(entry: Entry) -> float:
    return datetime.fromisoformat(entry["at"]).timestamp()


def _quantile(ordered: Sequence[float], q: float) -> float:
    return ordered[int(q * (len(ordered) - 1))]
