"""Fault plans: the instant at which a server is to die, or at which a write fails. Pure; see `fault_injection`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Literal, cast

__all__ = ["PLAN_VARIABLE", "AfterDelay", "AroundPoint", "Plan", "Point", "When", "at_each", "parse_plan"]

#: The launcher's children find the name of the file with their plan in it.
PLAN_VARIABLE = "CRASH_PLAN"

#: `write`: a commit of the journal's writer that changed something; `memory write`: one of memory's writer;
#: `commit`: any commit on any connection; `effect`: a line of the effects file.
Point = Literal["write", "memory write", "commit", "effect"]
#: `instead of`: the server lives, and the point fails as on a disk that is full.
When = Literal["before", "after", "instead of"]

_AROUND = re.compile(r"(before|after|instead of) (write|memory write|commit|effect) (\d+)")
_DELAY = re.compile(r"(kill|stop) after (\d+) ms")


@dataclass(frozen=True, slots=True)
class AroundPoint:
    """Strike at the `nth` point of this kind, counted from 1 since the plan came."""

    when: When
    point: Point
    nth: int

    def __str__(self) -> str:
        return f"{self.when} {self.point} {self.nth}"


@dataclass(frozen=True, slots=True)
class AfterDelay:
    """Strike `delay_ms` milliseconds after the first point since the plan came: by SIGKILL, or by SIGTERM to `stop`."""

    delay_ms: int
    how: Literal["kill", "stop"] = "kill"

    def __str__(self) -> str:
        return f"{self.how} after {self.delay_ms} ms"


Plan = AroundPoint | AfterDelay


def at_each(when: When, point: Point) -> Iterator[AroundPoint]:
    """Before, after, or instead of the first, the second, and so on without end."""
    return (AroundPoint(when, point, nth) for nth in count(1))


def parse_plan(text: str) -> Plan:
    """The plan that `str` of it spells. Raises ValueError."""
    if (around := _AROUND.fullmatch(text)) is not None:
        when, point, nth = around.groups()
        return AroundPoint(cast("When", when), cast("Point", point), int(nth))
    if (delay := _DELAY.fullmatch(text)) is not None:
        return AfterDelay(int(delay[2]), "stop" if delay[1] == "stop" else "kill")
    raise ValueError(f"{text!r} is no plan; examples: 'before write 3', 'instead of effect 1', 'kill after 250 ms'")
