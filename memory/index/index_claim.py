"""The claim to an index that only one process can keep: its files, or its part of a process's memory.

Of several processes over one memory database one owns the index and brings it up to date from the outbox; the others
answer from the database. With two owners each would get a part of the outbox, and neither index would be whole.
"""

import fcntl
import os
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from threadmark.db import DEFAULT_LIMITS, Limits, Purpose
from threadmark.memory.store.database import open_engine

__all__ = ["Claim", "FileClaim", "SessionClaim"]

#: The advisory lock of a memory database; any number does that nothing else there uses.
LOCK_KEY = 7_385_020_143_902_117
_TRY = "SELECT pg_try_advisory_lock(:key)"


class Claim(Protocol):
    """Blocking calls, each; made outside the event loop."""

    def take(self) -> str | None:
        """Hold the claim, now or still; None, or who holds it instead."""
        ...

    def release(self) -> None:
        """Let it go."""


class FileClaim:
    """A lock on a file, which the kernel lets go with the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> str | None:
        """Lock the file, and write into it who did. Raises OSError where there can be no file."""
        if self._descriptor is not None:
            return None
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode(errors="replace")
            os.close(descriptor)
            return f"process {holder}"
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        self._descriptor = descriptor
        return None

    def release(self) -> None:
        """Unlock the file, which stays: another may wait for this very one."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


class SessionClaim:
    """An advisory lock in a session of PostgreSQL, which the server lets go with the connection."""

    def __init__(self, url: str, limits: Limits = DEFAULT_LIMITS) -> None:
        self._engine = open_engine(url, write=True, limits=limits, purpose=Purpose.LIVENESS)
        self._connection: Connection | None = None

    def take(self) -> str | None:
        """Take the lock, or see that it is still held. While the server does not answer, no process has it."""
        try:
            if self._connection is None:
                self._connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
                if not self._connection.execute(text(_TRY), {"key": LOCK_KEY}).scalar_one():
                    self.release()
                    return "another process"
            else:
                self._connection.execute(text("SELECT 1"))
        except DBAPIError:
            self.release()
            return "no process while the memory database does not answer"
        return None

    def release(self) -> None:
        """End the session."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()
        self._engine.dispose()
