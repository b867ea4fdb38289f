"""Pools of threads, one for each purpose, in which tenants take turns.

asyncio's own executor is one queue for everything: whatever fills it also holds up what keeps a worker alive.
"""

import asyncio
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from threadmark.state.errors import TookTooLong

__all__ = ["Abandoned", "Pool", "act_for", "check_wanted", "interrupted_by", "is_wanted", "limit_each"]

T = TypeVar("T")
_doing = threading.local()
#: Where interrupts are made that block.
_INTERRUPTS = ThreadPoolExecutor(2, thread_name_prefix="threadmark-interrupt")


@dataclass(slots=True)
class _Patience:
    """How long somebody waits for the work of one request, before they would rather have a refusal (seconds).

    `left_s` is what is left of that, until the limit is one `for_each` piece of work.
    """

    limit_s: float
    left_s: float
    for_each: bool = False

    def spend(self, seconds: float) -> None:
        """Have less left."""
        if not self.for_each:
            self.left_s -= seconds


#: Whose work a task asks for, and how long they wait for it.
_tenant: ContextVar[str | None] = ContextVar("tenant", default=None)
_patience: ContextVar[_Patience | None] = ContextVar("patience", default=None)


class Abandoned(Exception):
    """Nobody waits for this work any more: its caller was cancelled."""


class _Job:
    """Work that waits for a thread, or has one."""

    __slots__ = ("future", "interrupt", "interrupt_blocks", "is_abandoned", "lock", "tenant", "work")

    def __init__(self, work: Callable[[], Any], tenant: str | None) -> None:
        self.work, self.tenant = work, tenant
        self.future: Future[Any] = Future()
        self.lock = threading.Lock()
        self.is_abandoned = False
        self.interrupt: Callable[[], None] | None = None
        self.interrupt_blocks = False

    def abandon(self) -> None:
        """Stop it at its next check, and the statement that it waits for at once."""
        with self.lock:
            self.is_abandoned = True
            if self.interrupt is None or not self.interrupt_blocks:
                self._interrupt()
                return
        _INTERRUPTS.submit(self._interrupt_locked)

    def _interrupt_locked(self) -> None:
        # The work cannot end meanwhile, and its thread begin with that of somebody else.
        with self.lock:
            self._interrupt()

    def _interrupt(self) -> None:
        if self.interrupt is not None:
            self.interrupt()


class Pool:
    """At most `size` threads for work of one purpose.

    Tenants take turns: the hundredth task of one stands behind the first of another. While a pool has more than one
    thread, no tenant gets all of them. Work of no tenant (turns, sweeps, keys) goes first, and `reserved` threads are
    kept for it. Where the pool is `limited`, work raises TookTooLong when its request has waited for longer than it
    may (see `act_for`).
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
        """The result of `work`. A caller that is cancelled waits no longer; its work ends at its next check."""
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
        """Give free threads to those whose turn it is. The lock is held."""
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
    """Called in loops over much data: raises Abandoned when nobody waits for the work of this thread any more."""
    if not is_wanted():
        raise Abandoned


def is_wanted() -> bool:
    """Whether somebody still waits for the work of this thread."""
    job: _Job | None = getattr(_doing, "job", None)
    return job is None or not job.is_abandoned


@contextmanager
def interrupted_by(interrupt: Callable[[], None], *, blocks: bool = False) -> Iterator[None]:
    """Have `interrupt` called, from another thread, when the work of this thread is abandoned meanwhile.

    One that `blocks` is not called from the event loop's thread.
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
        # Under the lock: an interrupt that came later would stop the work of somebody else.
        with job.lock:
            job.interrupt = None


def act_for(tenant_id: str | None, *, limit_s: float | None = None) -> None:
    """Let what this task asks of pools from now on be counted as the tenant's, or as nobody's (None).

    `limit_s`: it is for a request, which waits so long for its work in limited pools altogether (seconds).
    """
    _tenant.set(tenant_id)
    _patience.set(None if limit_s is None else _Patience(limit_s, limit_s))


def limit_each() -> None:
    """Let the limit of this request be that of each piece of work by itself from now on.

    For an answer that comes in parts, and for one that waits for something else than its own work.
    """
    patience = _patience.get()
    if patience is not None:
        patience.left_s, patience.for_each = patience.limit_s, True
