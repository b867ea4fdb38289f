"""Immediate detection of dead workers: each worker holds a lock that is released when its process dies.

A file lock is released exactly when its process ends, so it is conclusive, on SQLite and among the workers of one
machine. On PostgreSQL each worker also holds a session advisory lock, which is released when the connection breaks;
that means a death only by the rules of `threadmark.state.runs.fallen_locks`. Both only speed up detection: the lease
decides.

On SQLite a worker needs the single write lock to renew its lease, and another process may hold that lock for longer
than a lease lasts. A worker therefore also beats: it writes into its locked file until when others may count on it,
whatever the database is doing.
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
#: Digits of an instant in a lock file: nanoseconds of the monotonic clock that all processes of the machine share.
_BEAT_WIDTH = 20


class Liveness(Protocol):
    """Signs of life of workers. Every call blocks, so it is made outside the event loop."""

    def hold(self, worker_id: str) -> None:
        """Show that this process is alive, until `release` or death."""

    def refresh(self, worker_id: str) -> None:
        """Restore the sign if it was lost; called with every heartbeat."""

    def is_lost(self) -> bool:
        """Whether the sign was lost, as far as this process knows without I/O to the server."""

    def is_unsure(self) -> bool:
        """Whether a grace period is running, so that `dead` should be called again soon."""

    def release(self, worker_id: str) -> None:
        """Stop showing the sign."""

    def dead(self) -> list[str]:
        """Workers that showed the sign and no longer do."""

    def forget(self, worker_id: str) -> None:
        """Clean up after a worker that was reaped."""

    def beat(self, worker_id: str, until_s: float) -> bool:
        """Declare this worker alive until then (`time.monotonic()`) to the workers of this machine.

        False if that failed.
        """

    def beating(self, worker_ids: Iterable[str]) -> list[str]:
        """Those that are alive now, according to what their processes declared on this machine."""


class FileLocks:
    """Locks on `<folder>/<worker id>.lock`. A lock that can be taken belongs to a dead worker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    def hold(self, worker_id: str) -> None:
        """Lock this process's file until `release` or death."""
        self._folder.mkdir(parents=True, exist_ok=True)
        # Lock the file under another name first, so that no observer finds it unlocked.
        path = self._folder / f"{worker_id}.new"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.rename(self._folder / f"{worker_id}.lock")
        self._held[worker_id] = descriptor

    def refresh(self, worker_id: str) -> None:
        """Does nothing: a file lock is not lost while the process lives."""

    def is_lost(self) -> bool:
        """Never: see `refresh`."""
        return False

    def is_unsure(self) -> bool:
        """Never: a lock that can be taken belongs to a process that is gone."""
        return False

    def release(self, worker_id: str) -> None:
        """Release the lock and remove the file."""
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
            # The disk may be full; then only the lease decides.
            return False
        return True

    def beating(self, worker_ids: Iterable[str]) -> list[str]:
        """Those whose lock is held and whose declared instant is in the future."""
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
        """Workers whose lock is no longer held."""
        return [each for each, is_free in self.survey().items() if is_free]

    def survey(self) -> dict[str, bool]:
        """The other workers of this folder, and whether the lock of each is free."""
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
        """Remove the file of a worker that was reaped."""
        if worker_id not in self._held:
            (self._folder / f"{worker_id}.lock").unlink(missing_ok=True)

    def _is_free(self, path: Path) -> bool | None:
        """Whether the lock can be taken; None if there is no such file, or it belongs to another user."""
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
