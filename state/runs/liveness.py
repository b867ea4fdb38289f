"""Who is dead, known at once: a worker holds a lock that falls when its process does.

A file lock falls exactly when its process is gone: it is believed at once, on SQLite and among the workers of one
machine. On PostgreSQL each worker also holds a session advisory lock, which falls when the connection breaks; that is
a death only by the rules of `threadmark.state.runs.fallen_locks`. Both only speed things up: the lease decides.

But on SQLite a lease is renewed by whoever gets the one write lock, and somebody may hold that for longer than a lease.
So a worker also beats: it writes into its locked file until when it may be counted on, whatever the database is at.
"""

import fcntl
import os
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

__all__ = ["FileLocks", "Liveness"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}\.lock")
#: Digits of an instant in a lock file: nanoseconds of the machine's monotonic clock, which its processes share.
_BEAT_WIDTH = 20


class Liveness(Protocol):
    """Blocking calls, each; made outside the event loop."""

    def hold(self, worker_id: str) -> None:
        """Show that this process lives, until `release` or death."""

    def refresh(self, worker_id: str) -> None:
        """Show it again if the sign was lost; called with every heartbeat."""

    def is_lost(self) -> bool:
        """Whether the sign was lost, as far as this process can see without asking anybody."""

    def is_unsure(self) -> bool:
        """Whether `dead` waits for somebody's grace to end and should be asked again soon."""

    def release(self, worker_id: str) -> None:
        """Stop showing it."""

    def dead(self) -> list[str]:
        """Workers that showed it and do not any more."""

    def forget(self, worker_id: str) -> None:
        """Remove what is left of a worker that was buried."""

    def beat(self, worker_id: str, until_s: float) -> bool:
        """Let the workers of this machine count on this one until then (`time.monotonic()`). False: they cannot."""

    def beating(self, worker_ids: Iterable[str]) -> list[str]:
        """Those that live and can be counted on now, by what their processes said on this machine."""


class FileLocks:
    """Locks `<folder>/<worker id>.lock`. A lock that can be taken belongs to a dead worker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    def hold(self, worker_id: str) -> None:
        """Lock this process's file until `release` or death."""
        self._folder.mkdir(parents=True, exist_ok=True)
        # Locked under another name first: whoever looks finds the lock held, and never a file about to be locked.
        path = self._folder / f"{worker_id}.new"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.rename(self._folder / f"{worker_id}.lock")
        self._held[worker_id] = descriptor

    def refresh(self, worker_id: str) -> None:
        """A file lock is not lost while the process lives."""

    def is_lost(self) -> bool:
        """Never: see `refresh`."""
        return False

    def is_unsure(self) -> bool:
        """Never: a lock that can be taken belongs to a process that is gone."""
        return False

    def release(self, worker_id: str) -> None:
        """Let the file go and remove it."""
        descriptor = self._held.pop(worker_id, None)
        if descriptor is not None:
            (self._folder / f"{worker_id}.lock").unlink(missing_ok=True)
            os.close(descriptor)

    def beat(self, worker_id: str, until_s: float) -> bool:
        """Write the instant into the locked file."""
        descriptor = self._held.get(worker_id)
        if descriptor is None:
            return False
        try:
            os.pwrite(descriptor, b"%0*d" % (_BEAT_WIDTH, int(until_s * 1_000_000_000)), 0)
        except OSError:
            # The disk is full, perhaps: the lease alone decides then.
            return False
        return True

    def beating(self, worker_ids: Iterable[str]) -> list[str]:
        """Those whose lock is held and whose instant has not come."""
        now_ns = time.monotonic_ns()
        return [each for each in worker_ids if self._counted_on_until_ns(each) > now_ns]

    def _counted_on_until_ns(self, worker_id: str) -> int:
        path = self._folder / f"{worker_id}.lock"
        if not _NAME.fullmatch(path.name) or self._is_free(path) is not False:
            return 0
        try:
            beat = path.read_bytes()
        except OSError:
            return 0
        return int(beat) if len(beat) == _BEAT_WIDTH and beat.isdigit() else 0

    def dead(self) -> list[str]:
        """Workers whose lock nobody holds any more."""
        return [each for each, is_free in self.survey().items() if is_free]

    def survey(self) -> dict[str, bool]:
        """The other workers of this folder, and whether nobody holds their lock any more."""
        if not self._folder.is_dir():
            return {}
        found = {}
        for path in self._folder.iterdir():
            worker_id = path.stem
            if worker_id in self._held or not _NAME.fullmatch(path.name):
                continue
            is_free = self._is_free(path)
            if is_free is not None:
                found[worker_id] = is_free
        return found

    def forget(self, worker_id: str) -> None:
        """Remove the file of a worker that was buried."""
        if worker_id not in self._held:
            (self._folder / f"{worker_id}.lock").unlink(missing_ok=True)

    def _is_free(self, path: Path) -> bool | None:
        """Whether the lock can be taken; None where there is none, or one of another user."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        except (FileNotFoundError, PermissionError):
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
        return True
