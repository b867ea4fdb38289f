"""Who is dead, known at once: each worker on SQLite holds a file lock that the kernel lets go when it dies."""

import fcntl
import os
import re
from pathlib import Path

__all__ = ["FileLocks"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}\.lock")


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

    def release(self, worker_id: str) -> None:
        """Let the file go and remove it."""
        descriptor = self._held.pop(worker_id, None)
        if descriptor is not None:
            (self._folder / f"{worker_id}.lock").unlink(missing_ok=True)
            os.close(descriptor)

    def dead(self) -> list[str]:
        """Workers whose lock nobody holds any more."""
        if not self._folder.is_dir():
            return []
        gone = []
        for path in self._folder.iterdir():
            worker_id = path.stem
            if worker_id in self._held or not _NAME.fullmatch(path.name):
                continue
            if self._is_free(path):
                gone.append(worker_id)
        return gone

    def forget(self, worker_id: str) -> None:
        """Remove the file of a worker that was buried."""
        if worker_id not in self._held:
            (self._folder / f"{worker_id}.lock").unlink(missing_ok=True)

    def _is_free(self, path: Path) -> bool:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
        return True
