"""The notifier: wakes workers for what is committed already.

It notifies after the commit, never before: a worker that wakes earlier finds nothing and would drop the notification.
A notification is a hint and nothing more: the sweep of every worker finds the work whose notification was lost.
"""

from collections.abc import Collection
from typing import Protocol

from threadmark.workers.fleet.worker import Worker

__all__ = ["LocalNotifier", "Notifier"]


class Notifier(Protocol):
    """No call waits, and none fails."""

    def notify(self, run_id: str, attempt: int) -> None:
        """There is a run to claim; its next turn will be the `attempt`-th, from 1."""

    def notify_task(self, task_id: str, attempt: int) -> None:
        """There is a task to claim; its next attempt will be the `attempt`-th, from 1."""

    def notice(self, run_ids: Collection[str]) -> None:
        """Something came from outside for these runs (a cancellation, an answer, their deletion) or tasks."""


class LocalNotifier:
    """Wakes the worker of this process, if there is one; another process's sweep finds the rest."""

    def __init__(self, worker: Worker | None) -> None:
        self._worker = worker

    def notify(self, run_id: str, attempt: int) -> None:
        """There is a run to claim, and one worker: whatever is due is its own to take."""
        if self._worker is not None:
            self._worker.notify()

    def notify_task(self, task_id: str, attempt: int) -> None:
        """There is a task to claim."""
        if self._worker is not None:
            self._worker.task_runner.notify()

    def notice(self, run_ids: Collection[str]) -> None:
        """Something came from outside for these runs or tasks."""
        if self._worker is not None and run_ids:
            self._worker.notice(tuple(run_ids))
