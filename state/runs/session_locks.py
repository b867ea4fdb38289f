"""Locks in PostgreSQL sessions, which are released when a worker's connection breaks."""

import hashlib
import logging
import select
import time
from collections.abc import Iterable
from pathlib import Path

from sqlalchemy import Connection, Engine, text
from sqlalchemy import select as sql_select
from sqlalchemy.exc import DBAPIError

from threadmark.state import tables
from threadmark.state.runs.fallen_locks import FallenLocks
from threadmark.state.runs.liveness import FileLocks

__all__ = ["AdvisoryLocks", "HostLocks"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_LOG = logging.getLogger("threadmark.lease")

#: For how long after a start of PostgreSQL missing locks are ignored, so that leases alone decide (seconds).
SETTLE_S = 1.0
_JUST_STARTED = "SELECT clock_timestamp() - pg_postmaster_start_time() < make_interval(secs => :settle_s)"


class AdvisoryLocks:
    """One PostgreSQL session, held for the life of the worker, with an advisory lock named after it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Connection | None = None
        self._fell_at_s: float | None = None
        self._fallen = FallenLocks()

    def hold(self, worker_id: str) -> None:
        """Take the lock in a dedicated session, which no pooler may reassign (see `refuse_transaction_pooling`)."""
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        taken = connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _key(worker_id)}).scalar_one()
        self._connection = connection
        if not taken:
            # The server has not yet noticed that this worker's former session is gone, and will then release that lock.
            # Without a lock of its own, the living worker would be taken for dead. The next heartbeat tries again.
            self.release(worker_id)

    def refresh(self, worker_id: str) -> None:
        """Take the lock again if its session was lost."""
        connection = self._connection
        if connection is not None:
            try:
                connection.execute(text("SELECT 1"))
            except DBAPIError:
                self._lost()
            else:
                return
        self.hold(worker_id)

    def is_lost(self) -> bool:
        """Whether there is no session, or the server or the network has ended it."""
        connection = self._connection
        if connection is not None and not _has_ended(connection):
            return False
        self._lost()
        return True

    def is_unsure(self) -> bool:
        """Whether a lock has fallen and its grace period is not over."""
        return self._fallen.has_some

    def release(self, worker_id: str) -> None:
        """End the session."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()

    def dead(self) -> list[str]:
        """Registered workers whose lock fell alone and was not taken again within the grace period."""
        try:
            missing = self._missing()
        except DBAPIError:
            self._fallen.unanswered()
            raise
        if missing is None:
            self._fallen.unanswered()
            return []
        return self._fallen.judge(missing, time.monotonic(), self._fell_at_s)

    def beat(self, worker_id: str, until_s: float) -> bool:
        """False: the same server that renews the lease holds the session, so a beat would add nothing."""
        return False

    def beating(self, worker_ids: Iterable[str]) -> list[str]:
        """No workers; see `beat`."""
        return []

    def forget(self, worker_id: str) -> None:
        """Does nothing: the lock ended with the session."""
        self._fallen.forget(worker_id)

    def _missing(self) -> list[str] | None:
        """Registered workers whose lock is free; None right after a server start, which ended every session."""
        with self._engine.connect() as connection:
            if connection.execute(text(_JUST_STARTED), {"settle_s": SETTLE_S}).scalar_one():
                return None
            workers = connection.execute(sql_select(tables.worker.c.worker_id)).scalars().all()
            held = set(
                connection.execute(
                    text(
                        "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks"
                        " WHERE locktype = 'advisory' AND objsubid = 1"
                    )
                ).scalars()
            )
        return [worker_id for worker_id in workers if _key(worker_id) not in held]

    def _lost(self) -> None:
        """Drop the lost session and record when: workers whose locks fell with it may be alive too."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._fell_at_s = time.monotonic()
            connection.invalidate()
            connection.close()


def _has_ended(connection: Connection) -> bool:
    """Whether an idle session's socket is readable: an idle server sends nothing but the end of the session."""
    if connection.closed or connection.invalidated:
        return True
    driver = connection.connection.driver_connection
    if driver is None or driver.closed:
        return True
    readable, _, _ = select.select([driver.fileno()], [], [], 0)
    return bool(readable)


class HostLocks:
    """Session locks between machines, plus file locks among workers of one machine, which share a data directory.

    A file lock belongs to the kernel: no network failure can release it, and it ends with its process. It is therefore
    conclusive for the workers of this machine, whatever happened to their sessions.
    """

    def __init__(self, sessions: AdvisoryLocks, files: FileLocks) -> None:
        self._sessions, self._files = sessions, files

    @classmethod
    def over(cls, sessions: AdvisoryLocks, folder: Path) -> "HostLocks | AdvisoryLocks":
        """With file locks in a subfolder of `folder` that belongs to this kernel, if the kernel can be identified."""
        try:
            kernel = _BOOT_ID.read_text().strip()
        except OSError:
            return sessions
        return cls(sessions, FileLocks(folder / kernel))

    def hold(self, worker_id: str) -> None:
        """Take both locks; if the folder is not writable, only the session's."""
        try:
            self._files.hold(worker_id)
        except OSError:
            _LOG.warning("no lock file: deaths on this machine are detected a little later", exc_info=True)
        self._sessions.hold(worker_id)

    def refresh(self, worker_id: str) -> None:
        """Take the session's lock again if it was lost."""
        self._sessions.refresh(worker_id)

    def is_lost(self) -> bool:
        """Whether the session was lost."""
        return self._sessions.is_lost()

    def is_unsure(self) -> bool:
        """Whether a grace period is running."""
        return self._sessions.is_unsure()

    def release(self, worker_id: str) -> None:
        """Release both locks."""
        self._sessions.release(worker_id)
        self._files.release(worker_id)

    def dead(self) -> list[str]:
        """Workers of this machine whose process is gone, and workers elsewhere whose session says so."""
        survey = self._files.survey()
        gone = [each for each, is_free in survey.items() if is_free]
        return gone + [each for each in self._sessions.dead() if each not in survey]

    def beat(self, worker_id: str, until_s: float) -> bool:
        """False: on PostgreSQL no other write delays the renewal of a lease."""
        return False

    def beating(self, worker_ids: Iterable[str]) -> list[str]:
        """No workers; see `beat`."""
        return []

    def forget(self, worker_id: str) -> None:
        """Clean up after a worker that was reaped."""
        self._sessions.forget(worker_id)
        self._files.forget(worker_id)


def _key(worker_id: str) -> int:
    # 62 bits: positive as a bigint, however it is assembled from its two halves.
    return int.from_bytes(hashlib.sha256(worker_id.encode()).digest()[:8], "big") >> 2
