"""What makes a server die on time: it is wrapped around the product from outside and counts what passes."""

import os
import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from examples.refund import effects
from tests.crash.plan import AfterDelay, KillPlan, Point, parse_plan
from workers import worker

__all__ = ["Doom", "bring_upon"]

T = TypeVar("T")
WRITER_THREADS = "threadmark-writer"


class Doom:
    """Ends this process where the plan in `plan_file` says. A plan that comes, or changes, begins to count anew."""

    def __init__(self, plan_file: Path) -> None:
        self._plan_file = plan_file
        self._lock = threading.Lock()
        self._text = ""
        self._plan: KillPlan | None = None
        self._counts: Counter[Point] = Counter()

    def around(self, points: tuple[Point, ...], act: Callable[[], T]) -> T:
        """What `act` returns, unless the process dies right before it or right after it."""
        with self._lock:
            self._read_plan()
            for point in points:
                self._counts[point] += 1
            counts = dict(self._counts)
        self._die_if_due("before", points, counts)
        result = act()
        self._die_if_due("after", points, counts)
        return result

    def _read_plan(self) -> None:
        try:
            text = self._plan_file.read_text()
        except FileNotFoundError:
            text = ""
        if text == self._text:
            return
        self._text, self._counts = text, Counter()
        self._plan = parse_plan(text) if text else None
        if isinstance(self._plan, AfterDelay):
            timer = threading.Timer(self._plan.delay_ms / 1000, self._die_of, [text])
            timer.daemon = True
            timer.start()

    def _die_of(self, text: str) -> None:
        with self._lock:
            self._read_plan()
            if self._text == text:
                die()

    def _die_if_due(self, when: str, points: tuple[Point, ...], counts: Mapping[Point, int]) -> None:
        plan = self._plan
        if plan is None or isinstance(plan, AfterDelay) or plan.when != when or plan.point not in points:
            return
        if counts[plan.point] == plan.nth:
            die()


def die() -> None:
    """The end, without warning: no handler runs, nothing is flushed."""
    os.kill(os.getpid(), signal.SIGKILL)


def bring_upon(doom: Doom) -> None:
    """Wrap the commits of every connection opened from now on, and the lines of the effects file."""

    class Counted(sqlite3.Connection):
        _changes_seen = 0

        def commit(self) -> None:
            self._committed(super().commit)

        def rollback(self) -> None:
            super().rollback()
            self._changes_seen = self.total_changes

        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if sql == "COMMIT":
                return self._committed(lambda: sqlite3.Connection.execute(self, sql, *parameters))
            return super().execute(sql, *parameters)

        def _committed(self, act: Callable[[], T]) -> T:
            if not self.in_transaction:
                return act()
            points: tuple[Point, ...] = ("commit",)
            if threading.current_thread().name.startswith(WRITER_THREADS) and self.total_changes != self._changes_seen:
                points = ("commit", "write")
            result = doom.around(points, act)
            self._changes_seen = self.total_changes
            return result

    append = effects._append

    def append_counted(path: Path, line: Mapping[str, Any]) -> None:
        doom.around(("effect",), lambda: append(path, line))

    sqlite3.dbapi2.connect = partial(sqlite3.dbapi2.connect, factory=Counted)  # type: ignore[assignment]
    effects._append = append_counted
    # Housekeeping by the clock would move the counts: once at the start is enough.
    worker._PURGE_EVERY_S = 3_600.0
