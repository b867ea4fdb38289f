"""How long an orphan waits: from when the next server is ready until it takes up what the last one left. Pure."""

import itertools
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from tests.crash.doomed import Death

__all__ = ["pickup_lags_s", "takeover_lags_s"]

Entry = Mapping[str, Any]


def pickup_lags_s(journal: Sequence[Entry], deaths: Sequence[Death], ready_at_s: Sequence[float]) -> list[float]:
    """Seconds for each death that left the thread's run an orphan; below zero: taken up before the server was ready."""
    lags_s = []
    for death in deaths:
        before = [entry for entry in journal if _at_s(entry) < death.noticed_at_s]
        turns = [entry for entry in journal[len(before) :] if entry["kind"] == "turn_started"]
        ready = [each for each in ready_at_s if each > death.noticed_at_s]
        if before and turns and ready and _was_moving(before[-1]):
            lags_s.append(_at_s(turns[0]) - ready[0])
    return lags_s


def takeover_lags_s(journal: Sequence[Entry], deaths: Sequence[Death]) -> list[float]:
    """Seconds from each death of a process that moved the thread to the turn that another process began.

    A death is the thread's own where the next turn is another worker's than the last and nothing else came between.
    """
    turns = [entry for entry in journal if entry["kind"] == "turn_started"]
    lags_s = []
    for before, after in itertools.pairwise(turns):
        between = [entry for entry in journal if before["seq"] < entry["seq"] < after["seq"]]
        if before["worker_id"] == after["worker_id"] or not all(_was_moving(each) for each in between):
            continue
        last_at_s = _at_s(between[-1] if between else before)
        ends = [death.noticed_at_s for death in deaths if last_at_s <= death.noticed_at_s <= _at_s(after)]
        if ends:
            lags_s.append(_at_s(after) - ends[0])
    return lags_s


def _was_moving(last: Entry) -> bool:
    """Whether a run was being moved behind this entry, and neither over nor waiting for a person."""
    return last["kind"] not in ("run_settled", "wait_opened")


def _at_s(entry: Entry) -> float:
    return datetime.fromisoformat(entry["at"]).timestamp()
