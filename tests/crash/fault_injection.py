"""What makes a server die on time: it is wrapped around the product from outside and counts what passes."""

import errno
import os
import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tests.crash.plan import AfterDelay, AroundPoint, Plan, Point, parse_plan
from threadmark.examples.refund import effects
from threadmark.workers.fleet import housekeeping

__all__ = ["Doom", "bring_upon"]

T = TypeVar("T")
#: By the beginning of a thread's name, whose commits are a point of their own.
WRITERS: Mapping[str, Point] = {"threadmark-writer": "write", "memory-writer": "memory write"}


class Doom:
    """Strikes where the plan in `plan_file` says, and removes it then. A plan that comes begins to count anew."""

    def __init__(self, plan_file: Path) -> None:
        self._plan_file = plan_file
        self._lock = threading.Lock()
        self._text = ""
        self._plan: Plan | None = None
        self._counts: Counter[Point] = Counter()

    def around(self, points: tuple[Point, ...], act: Callable[[], T], failure: Exception) -> T:
        """What `act` returns, unless the process dies right before or behind it, or `failure` comes in its place."""
        with self._lock:
            self._read_plan()
            for point in points:
                self._counts[point] += 1
            plan = self._plan
            when = plan.when if isinstance(plan, AroundPoint) and self._is_due(plan, points) else None
        if when == "before":
            self._strike(signal.SIGKILL)
        if when == "instead of":
            self._plan_file.unlink(missing_ok=True)
            raise failure
        result = act()
        if when == "after":
            self._strike(signal.SIGKILL)
        return result

    def _is_due(self, plan: AroundPoint, points: tuple[Point, ...]) -> bool:
        return plan.point in points and self._counts[plan.point] == plan.nth

    def _read_plan(self) -> None:
        text = self._plan_file.read_text() if self._plan_file.exists() else ""
        if text == self._text:
            return
        self._text, self._counts = text, Counter()
        self._plan = parse_plan(text) if text else None
        if isinstance(self._plan, AfterDelay):
            by = signal.SIGTERM if self._plan.how == "stop" else signal.SIGKILL
            timer = threading.Timer(self._plan.delay_ms / 1000, self._strike_later, [text, by])
            timer.daemon = True
            timer.start()

    def _strike_later(self, text: str, by: signal.Signals) -> None:
        with self._lock:
            self._read_plan()
            if self._text == text:
                self._strike(by)

    def _strike(self, by: signal.Signals) -> None:
        self._plan_file.unlink(missing_ok=True)
        os.kill(os.getpid(), by)


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
            if self.total_changes != self._changes_seen:
                thread = threading.current_thread().name
                points += tuple(point for name, point in WRITERS.items() if thread.startswith(name))
            refused = sqlite3.OperationalError("disk I/O error")
            refused.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
            result = doom.around(points, act, refused)
            self._changes_seen = self.total_changes
            return result

    append = effects._append

    def append_counted(path: Path, line: Mapping[str, Any]) -> None:
        doom.around(("effect",), lambda: append(path, line), OSError(errno.ENOSPC, "no space left"))

    sqlite3.dbapi2.connect = partial(sqlite3.dbapi2.connect, factory=Counted)  # type: ignore[assignment]
    effects._append = append_counted
    # Housekeeping by the clock would move the counts.
    housekeeping.FIRST_S = 3_600.0
