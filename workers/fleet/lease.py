"""The lease of a worker process, kept alive by a thread of its own.

The thread has its own connection, so an event loop that a tool blocks is late and not dead. A worker that could not
renew stops starting steps before its lease ends: `is_safe` turns false by the process's own monotonic clock.

On SQLite a long commit of anybody's may keep a lease from being renewed until it has ended. A worker that only waits
for that lock gives a sign of life meanwhile, and is not taken over.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection, Engine

from threadmark.db import Condition, condition_of
from threadmark.db.engine import BUSY_TIMEOUT_MS
from threadmark.state import Liveness, expire, heartbeat, is_outage, register, spare
from threadmark.workers.fleet.sign_of_life import SignOfLife
from threadmark.workers.supervisor import Loop, Supervisor, stale_after_s

__all__ = ["Lease", "WriterStalled"]

#: How often a worker looks whether the session of its lock is still there (seconds).
LOOK_S = 0.1
#: How long one attempt to get SQLite's write lock waits, and the sign of life with it (milliseconds).
LOCK_WAIT_MS = 50
#: How long a renewal waits for that lock before it is worth a line in the log (seconds).
LONG_WAIT_S = 5.0
_LOG = logging.getLogger("threadmark.lease")
T = TypeVar("T")


class WriterStalled(RuntimeError):
    """The connection that writes for turns hangs or fails, while that of the lease does not."""


def _not_stalled() -> float:
    return 0.0


class Lease:
    """Holds and renews one worker's lease; `ttl_s` and `heartbeat_s` in seconds.

    `stalled_s` says for how long the worker has been unable to write: longer than a lease, and it is not renewed.
    """

    def __init__(
        self,
        engine: Engine,
        liveness: Liveness,
        worker_id: str,
        *,
        ttl_s: float,
        heartbeat_s: float,
        stalled_s: Callable[[], float] = _not_stalled,
    ) -> None:
        self._engine = engine
        self._worker_id = worker_id
        self._ttl_s = ttl_s
        self._heartbeat_s = heartbeat_s
        self._liveness = liveness
        self._sign = SignOfLife(liveness, worker_id, ttl_s=ttl_s)
        self._has_one_writer = engine.dialect.name == "sqlite"
        self._stalled_s = stalled_s
        self._on_lost: Callable[[], None] = _no_listener
        self._counts: Callable[[], Mapping[str, int | str]] = dict
        self._renewed_at = 0.0
        self._ended = threading.Event()
        self._supervisor: Supervisor | None = None
        self._home: asyncio.AbstractEventLoop | None = None
        self._loop: Loop | None = None
        self._thread = threading.Thread(target=self._keep, name="threadmark-lease", daemon=True)

    def report_to(self, supervisor: Supervisor, home: asyncio.AbstractEventLoop) -> None:
        """Report each renewal, and an end that was not asked for, to the supervisor of the event loop `home`."""
        self._supervisor, self._home = supervisor, home
        self._loop = supervisor.watch("heartbeat", stale_s=stale_after_s(self._heartbeat_s))

    def begin(
        self, agents: str, on_lost: Callable[[], None], counts: Callable[[], Mapping[str, int | str]] = dict
    ) -> None:
        """Enrol the worker and start to renew; `on_lost` is called, in this thread, if it ended or was ended meanwhile.

        No step starts until it has returned. `counts` is asked with every renewal. Blocks for one commit.
        """
        self._on_lost, self._agents, self._counts = on_lost, agents, counts
        self._liveness.hold(self._worker_id)
        began = time.monotonic()
        try:
            with self._engine.begin() as connection:
                register(connection, self._worker_id, self._ttl_s, agents)
        except BaseException:
            # A lock that outlived its enrolment would belong to a worker that never was.
            self._liveness.release(self._worker_id)
            raise
        self._renewed_at = began
        self._sign.begin()
        self._thread.start()

    @property
    def is_safe(self) -> bool:
        """Whether a step may start: the lease, or the sign of life, holds for at least one more heartbeat."""
        if self._has_one_writer and self._sign.left_s > self._heartbeat_s:
            return True
        return time.monotonic() - self._renewed_at < self._ttl_s - self._heartbeat_s

    def sparing(self, claim: Callable[[Connection], T]) -> Callable[[Connection], T]:
        """The unit of a claim, preceded by the renewal of leases whose workers only wait for SQLite's write lock."""
        if not self._has_one_writer:
            return claim

        def unit(connection: Connection) -> T:
            spare(connection, self._liveness.beating, self._ttl_s)
            return claim(connection)

        return unit

    def end(self) -> None:
        """Stop renewing and give the lease back at once, if the database can be reached. Blocks for one commit."""
        self._ended.set()
        self._thread.join()
        if self._supervisor is not None and self._loop is not None:
            self._supervisor.forget(self._loop)
        try:
            with self._engine.begin() as connection:
                expire(connection, [self._worker_id])
        except Exception as error:
            if not is_outage(error):
                raise
            _LOG.warning("the lease could not be released: the database is away; it ends within %g s", self._ttl_s)
        finally:
            self._liveness.release(self._worker_id)

    @property
    def is_unsure(self) -> bool:
        """Whether a worker may be dead whose grace is not over: look again soon."""
        return self._liveness.is_unsure()

    def reap_dead_workers(self) -> list[str]:
        """End the leases of workers whose process is gone; their ids. Blocks."""
        dead = self._liveness.dead()
        if dead:
            with self._engine.begin() as connection:
                expire(connection, dead)
            for worker_id in dead:
                self._liveness.forget(worker_id)
        return dead

    def _keep(self) -> None:
        try:
            self._renew_until_ended()
        finally:
            # Without renewals the worker starts nothing any more, and would look alive for ever.
            if not self._ended.is_set() and self._supervisor is not None:
                self._supervisor.fail("heartbeat", self._home)

    def _renew_until_ended(self) -> None:
        while self._pause():
            began = time.monotonic()
            try:
                self._renew()
            except Exception as error:
                # The database may be back before the lease ends; until then is_safe holds new steps back.
                if self._loop is None:
                    _LOG.warning("the lease could not be renewed", exc_info=True)
                else:
                    self._loop.failed(error)
            else:
                self._renewed_at = began
                self._sign.begin()
                if self._loop is not None:
                    self._loop.completed()

    def _pause(self) -> bool:
        """Wait for the next heartbeat; False when it was the last. A sign of life that was lost is shown again at once.

        The others give it half a second before they take this worker for dead.
        """
        until = time.monotonic() + self._heartbeat_s
        while (left_s := until - time.monotonic()) > 0:
            if self._ended.wait(min(left_s, LOOK_S)):
                return False
            if self._liveness.is_lost():
                return True
        return not self._ended.is_set()

    def _renew(self) -> None:
        if (stalled_s := self._stalled_s()) > self._ttl_s:
            # Renewed by this connection, the lease would keep the runs from workers that can write.
            raise WriterStalled(f"nothing could be written for turns for {stalled_s:.0f} s; the lease is left to end")
        self._liveness.refresh(self._worker_id)
        counts = self._counts()
        with self._writing() as connection:
            # Asked once the lock is held: until then no other worker can have claimed what this worker holds.
            is_spared = self._has_one_writer and self._sign.left_s > 0
            kept = heartbeat(connection, self._worker_id, self._ttl_s, counts, if_late=is_spared)
            if not kept:
                register(connection, self._worker_id, self._ttl_s, self._agents)
        if not kept:
            # Frozen or cut off for longer than the lease: threads may belong to others, and their fences say so.
            _LOG.error("worker %s was declared dead; it lets go of what others have and starts afresh", self._worker_id)
            self._on_lost()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A transaction; the sign of life goes on while it waits for SQLite's write lock, and for nothing else."""
        with self._engine.connect() as connection:
            if self._has_one_writer:
                self._lock(connection)
            else:
                connection.begin()
            yield connection
            connection.commit()

    def _lock(self, connection: Connection) -> None:
        with self._in_short_turns(connection):
            since, is_long = time.monotonic(), False
            while True:
                self._sign.beat()
                try:
                    connection.begin()
                except Exception as error:
                    if self._ended.is_set() or condition_of(error) is not Condition.BUSY:
                        raise
                else:
                    return
                if not is_long and time.monotonic() - since > LONG_WAIT_S:
                    is_long = True
                    _LOG.warning("the database's write lock is held for long; the lease is renewed after it")

    @contextmanager
    def _in_short_turns(self, connection: Connection) -> Iterator[None]:
        """Let an attempt to get the lock wait for LOCK_WAIT_MS, and no more."""
        driver = connection.connection.driver_connection
        if driver is None:
            raise RuntimeError("a connection without a driver's")
        driver.execute(f"PRAGMA busy_timeout={LOCK_WAIT_MS:d}")
        try:
            yield
        finally:
            driver.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS:d}")


def _no_listener() -> None:
    """Before `begin` there is nothing to call."""
