"""Who is dead, known at once: a worker holds a lock that falls when its process does.

On SQLite a file lock, which the kernel lets go; on PostgreSQL a session advisory lock, which the server lets go when
the connection breaks. Both only speed things up: the lease decides.
"""

import fcntl
import hashlib
import os
import re
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, Engine, select, text
from sqlalchemy.exc import DBAPIError

from state import tables

__all__ = ["AdvisoryLocks", "FileLocks", "Liveness"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}\.lock")


class Liveness(Protocol):
    """Blocking calls, each; made outside the event loop."""

    def hold(self, worker_id: str) -> None:
        """Show that this process lives, until `release` or death."""

    def refresh(self, worker_id: str) -> None:
        """Show it again if the sign was lost; called with every heartbeat."""

    def release(self, worker_id: str) -> None:
        """Stop showing it."""

    def dead(self) -> list[str]:
        """Workers that showed it and do not any more."""

    def forget(self, worker_id: str) -> None:
        """Remove what is left of a worker that was buried."""


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


#: How long after a start of PostgreSQL a missing lock means nothing; until then leases alone decide (seconds).
SETTLE_S = 10.0
_JUST_STARTED = "SELECT clock_timestamp() - pg_postmaster_start_time() < make_interval(secs => :settle_s)"


class AdvisoryLocks:
    """One session of PostgreSQL, held for the life of the worker, with an advisory lock named after it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Connection | None = None

    def hold(self, worker_id: str) -> None:
        """Take the lock in a session of its own, which no pooler may take away (see `refuse_transaction_pooling`)."""
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        taken = connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _key(worker_id)}).scalar_one()
        self._connection = connection
        if not taken:
            # The server has not noticed yet that this worker's former session is gone, and lets it go when it does:
            # without a lock of its own the living would then be taken for dead. The next heartbeat tries again.
            self.release(worker_id)

    def refresh(self, worker_id: str) -> None:
        """Take the lock again if its session was lost."""
        connection = self._connection
        if connection is not None:
            try:
                connection.execute(text("SELECT 1"))
            except DBAPIError:
                self.release(worker_id)
            else:
                return
        self.hold(worker_id)

    def release(self, worker_id: str) -> None:
        """End the session."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()

    def dead(self) -> list[str]:
        """Enrolled workers whose lock nobody holds; nobody for a while after a start of the server.

        A restart breaks every session, and the living need a heartbeat to take their locks again.
        """
        with self._engine.connect() as connection:
            if connection.execute(text(_JUST_STARTED), {"settle_s": SETTLE_S}).scalar_one():
                return []
            workers = connection.execute(select(tables.worker.c.worker_id)).scalars().all()
            held = set(
                connection.execute(
                    text(
                        "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks"
                        " WHERE locktype = 'advisory' AND objsubid = 1"
                    )
                ).scalars()
            )
        return [worker_id for worker_id in workers if _key(worker_id) not in held]

    def forget(self, worker_id: str) -> None:
        """Nothing is left: the lock went with the session."""


def _key(worker_id: str) -> int:
    # 62 bits: positive as a bigint, whichever way it is put together from its two halves.
    return int.from_bytes(hashlib.sha256(worker_id.encode()).digest()[:8], "big") >> 2
