"""Kill plans: at which instant of its work a server is to die. Pure; the launcher honours them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Literal, cast

__all__ = ["PLAN_VARIABLE", "AfterDelay", "AroundPoint", "KillPlan", "Point", "When", "at_each", "parse_plan"]

#: The launcher's children find the name of the file with their plan in it.
PLAN_VARIABLE = "CRASH_PLAN"

#: `write`: a commit of the journal's writer that changed something; `commit`: any commit on any connection;
#: `effect`: a line of the effects file.
Point = Literal["write", "commit", "effect"]
When = Literal["before", "after"]

_AROUND = re.compile(r"(before|after) (write|commit|effect) (\d+)")
_DELAY = re.compile(r"after (\d+) ms")


@dataclass(frozen=True, slots=True)
class AroundPoint:
    """Die right before or right after the `nth` point of this kind, counted from 1 since the plan came."""

    when: When
    point: Point
    nth: int

    def __str__(self) -> str:
        return f"{self.when} {self.point} {self.nth}"


@dataclass(frozen=True, slots=True)
class AfterDelay:
    """Die `delay_ms` milliseconds after the first write that came with the plan or later."""

    delay_ms: int

    def __str__(self) -> str:
        return f"after {self.delay_ms} ms"


KillPlan = AroundPoint | AfterDelay


def at_each(when: When, point: Point) -> Iterator[AroundPoint]:
    """Before, or after, the first, the second, and so on without end."""
    return (AroundPoint(when, point, nth) for nth in count(1))


def parse_plan(text: str) -> KillPlan:
    """The plan that `str` of it spells. Raises ValueError."""
    if (around := _AROUND.fullmatch(text)) is not None:
        when, point, nth = around.groups()
        return AroundPoint(cast("When", when), cast("Point", point), int(nth))
    if (delay := _DELAY.fullmatch(text)) is not None:
        return AfterDelay(int(delay[1]))
    raise ValueError(f"{text!r} is no kill plan; examples: 'before write 3', 'after effect 1', 'after 250 ms'")
