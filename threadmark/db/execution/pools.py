"""Thread pools, one for each purpose, in which tenants take turns.

asyncio's default executor is a single queue: any load on it also delays the heartbeats that keep a worker alive.
"""

import asyncio
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from threadmark.db.errors import TookTooLong

__all__ = ["Abandoned", "Pool", "act_for", "check_wanted", "interrupted_by", "is_wanted", "limit_each", "wanted_each"]

T = TypeVar("T")
_doing = threading.local()
#: Runs interrupts that block.
_INTERRUPTS = ThreadPoolExecutor(2, thread_name_prefix="threadmark-interrupt")


@dataclass(slots=True)
class _Patience:
    """How long a request may wait for its work before it fails (seconds).

    `left_s` is what remains of that, until `limit_each` applies the limit to each piece of work.
    """

    limit_s: float
    left_s: float
    for_each: bool = False

    def spend(self, seconds: float) -> None:
        """Deduct time from what is left."""
        if not self.for_each:
            self.left_s -= seconds


#: The tenant for which a task requests work, and the time limit of its request.
_tenant: ContextVar[str | None] = ContextVar("tenant", default=None)
_patience: ContextVar[_Patience | None] = ContextVar("patience", default=None)


class Abandoned(Exception):
    """The caller of this work was cancelled, so its result is not needed."""


class _Job:
    """Work that is queued for a thread or runs on one."""

    __slots__ = ("future", "interrupt", "interrupt_blocks", "is_abandoned", "lock", "tenant", "work")

    def __init__(self, work: Callable[[], Any], tenant: str | None) -> None:
        self.work, self.tenant = work, tenant
        self.future: Future[Any] = Future()
        self.lock = threading.Lock()
        self.is_abandoned = False
        self.interrupt: Callable[[], None] | None = None
        self.interrupt_blocks = False

    def abandon(self) -> None:
        """Stop the work at its next check, and interrupt its current statement at once."""
        with self.lock:
            self.is_abandoned = True
            if self.interrupt is None or not self.interrupt_blocks:
                self._interrupt()
                return
        _INTERRUPTS.submit(self._interrupt_locked)

    def _interrupt_locked(self) -> None:
        # While the lock is held, the work cannot end, and its thread cannot begin other work.
        with self.lock:
            self._interrupt()

    def _interrupt(self) -> None:
        if self.interrupt is not None:
            self.interrupt()


class Pool:
    """At most `size` threads for work of one purpose.

    Tenants take turns: a tenant's hundredth task queues behind another tenant's first. While a pool has more than one
    thread, no tenant gets all of them. Work of no tenant (turns, sweeps, key look-ups) goes first, and `reserved`
    threads are kept for it. In a `limited` pool, work raises TookTooLong when its request exceeds its time limit (see
    `act_for`).
    """

    def __init__(self, name: str, size: int, *, reserved: int = 0, limited: bool = False) -> None:
        self._size, self._open = size, max(1, size - reserved)
        self._each = max(1, self._open - 1)
        self._is_limited = limited
        self._threads = ThreadPoolExecutor(size, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._waiting: OrderedDict[str | None, deque[_Job]] = OrderedDict()
        self._running: Counter[str | None] = Counter()

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`. A cancelled caller returns at once; its work stops at its next check."""
        tenant = _tenant.get()
        patience = _patience.get() if self._is_limited else None
        job = _Job(work, tenant)
        with self._lock:
            self._waiting.setdefault(tenant, deque()).append(job)
            self._begin()
        began_s = time.monotonic()
        waiting = asyncio.timeout(None if patience is None else patience.left_s)
        try:
            async with waiting:
                return cast(T, await asyncio.wrap_future(job.future))
        except BaseException as error:
            if not job.future.done() or job.future.cancelled():
                job.abandon()
            if waiting.expired() and patience is not None:
                raise TookTooLong(patience.limit_s) from error
            raise
        finally:
            if patience is not None:
                patience.spend(time.monotonic() - began_s)

    def shutdown(self) -> None:
        """End the threads when their work is done. Blocks."""
        self._threads.shutdown()

    def _begin(self) -> None:
        """Give free threads to the tenants whose turn it is. The caller holds the lock."""
        while (job := self._next()) is not None:
            self._running[job.tenant] += 1
            self._threads.submit(self._do, job)

    def _next(self) -> _Job | None:
        for tenant in sorted(self._waiting, key=lambda each: each is not None):
            if not self._has_room(tenant):
                continue
            jobs = self._waiting[tenant]
            job = jobs.popleft()
            if jobs:
                self._waiting.move_to_end(tenant)
            else:
                del self._waiting[tenant]
            return job
        return None

    def _has_room(self, tenant: str | None) -> bool:
        total = self._running.total()
        if tenant is None:
            return total < self._size
        return total < self._size and total - self._running[None] < self._open and self._running[tenant] < self._each

    def _do(self, job: _Job) -> None:
        try:
            if job.future.set_running_or_notify_cancel():
                _doing.job = job
                try:
                    job.future.set_result(job.work())
                except BaseException as error:
                    job.future.set_exception(error)
        finally:
            _doing.job = None
            with self._lock:
                self._running[job.tenant] -= 1
                self._running += Counter()
                self._begin()


def check_wanted() -> None:
    """Raise Abandoned if the result of this thread's work is not needed any more. Call it in loops over much data."""
    if not is_wanted():
        raise Abandoned


def wanted_each(items: Iterable[T]) -> Iterator[T]:
    """The items, with a `check_wanted` before each: a loop over them ends when its result is not needed any more."""
    for item in items:
        check_wanted()
        yield item


def is_wanted() -> bool:
    """Whether a caller still waits for this thread's work."""
    job: _Job | None = getattr(_doing, "job", None)
    return job is None or not job.is_abandoned


@contextmanager
def interrupted_by(interrupt: Callable[[], None], *, blocks: bool = False) -> Iterator[None]:
    """Call `interrupt`, from another thread, if this thread's work is abandoned inside the block.

    One that `blocks` is never called on the event loop's thread.
    """
    job: _Job | None = getattr(_doing, "job", None)
    if job is None:
        yield
        return
    with job.lock:
        job.interrupt, job.interrupt_blocks = interrupt, blocks
    try:
        check_wanted()
        yield
    finally:
        # Take the lock: an interrupt that came later would stop other work.
        with job.lock:
            job.interrupt = None


def act_for(tenant_id: str | None, *, limit_s: float | None = None) -> None:
    """Attribute the work that this task requests from pools from now on to the tenant, or to no tenant (None).

    `limit_s` is the time limit of a request (seconds), for all of its work in limited pools together.
    """
    _tenant.set(tenant_id)
    _patience.set(None if limit_s is None else _Patience(limit_s, limit_s))


def limit_each() -> None:
    """Apply the request's time limit to each piece of its work from now on.

    For answers that come in parts, and for those that wait for more than their own work.
    """
    patience = _patience.get()
    if patience is not None:
        patience.left_s, patience.for_each = patience.limit_s, True
