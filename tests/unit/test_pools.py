"""Pools of threads: tenants take turns, the house goes first, and work that nobody waits for ends."""

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from threadmark.db.execution.pools import Pool, act_for, check_wanted, interrupted_by
from threadmark.state import TookTooLong

LONG_S = 20.0


class Gate:
    """Work that waits until the test lets it go on."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self._open = threading.Event()

    def work(self) -> None:
        """Wait for `let_go`."""
        self.entered.release()
        assert self._open.wait(LONG_S)

    def let_go(self) -> None:
        """Let everything go on."""
        self._open.set()


async def _as(tenant: str | None, ask: Callable[[], Awaitable[None]], *, limit_s: float | None = None) -> None:
    act_for(tenant, limit_s=limit_s)
    await ask()


def _begin(pool: Pool, tenant: str | None, work: Callable[[], None]) -> "asyncio.Task[None]":
    return asyncio.create_task(_as(tenant, partial(pool.run, work)))


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG_S):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in threads
            await asyncio.sleep(0.001)


async def test_the_first_task_of_a_tenant_stands_before_the_second_of_another() -> None:
    """Ten large questions of one tenant are asked first; the small one of another is answered second."""
    pool, gate, done = Pool("test", 1), Gate(), list[str]()
    held = _begin(pool, "large", gate.work)
    await _until(lambda: gate.entered.acquire(blocking=False))
    tasks = [_begin(pool, "large", partial(done.append, f"large {number}")) for number in range(10)]
    await asyncio.sleep(0)
    tasks.append(_begin(pool, "small", partial(done.append, "small")))
    await asyncio.sleep(0)
    gate.let_go()
    await asyncio.gather(held, *tasks)
    pool.shutdown()

    assert done[:2] == ["large 0", "small"]


async def test_a_tenant_never_has_all_the_threads_and_the_house_always_has_one() -> None:
    """Whatever one tenant asks for, another is answered at once; whatever all ask for, a turn is not held up."""
    pool, gate = Pool("test", 4, reserved=1), Gate()
    tasks = [_begin(pool, "a", gate.work) for _ in range(9)]
    await _until(lambda: gate.entered.acquire(blocking=False))
    await _until(lambda: gate.entered.acquire(blocking=False))
    async with asyncio.timeout(LONG_S):
        await _begin(pool, "b", lambda: None)
    tasks += [_begin(pool, "b", gate.work) for _ in range(9)]
    await _until(lambda: gate.entered.acquire(blocking=False))
    async with asyncio.timeout(LONG_S):
        await _begin(pool, None, lambda: None)
    none_beyond = not gate.entered.acquire(blocking=False)
    gate.let_go()
    await asyncio.gather(*tasks)
    pool.shutdown()

    assert none_beyond


async def test_what_a_cancelled_caller_asked_for_is_not_begun() -> None:
    """A client that hangs up leaves no work behind that waits for its turn."""
    pool, gate, done = Pool("test", 1), Gate(), list[str]()
    held = _begin(pool, "a", gate.work)
    await _until(lambda: gate.entered.acquire(blocking=False))
    given_up = _begin(pool, "a", partial(done.append, "given up"))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.wait([given_up])
    gate.let_go()
    await held
    await pool.run(lambda: None)
    pool.shutdown()

    assert done == []


async def test_work_that_nobody_waits_for_ends_at_its_next_check() -> None:
    """A cancelled caller frees the thread, although Python cannot stop it."""
    pool, entered = Pool("test", 1), threading.Event()

    def endless() -> None:
        entered.set()
        while True:
            check_wanted()

    asked = _begin(pool, "a", endless)
    await _until(entered.is_set)
    asked.cancel()
    await asyncio.wait([asked])
    async with asyncio.timeout(LONG_S):
        await pool.run(lambda: None)
    pool.shutdown()

    assert asked.cancelled()


async def test_a_statement_that_nobody_waits_for_is_interrupted() -> None:
    """One statement may run for minutes and comes by no check."""
    pool, entered = Pool("test", 1), threading.Event()

    def query() -> None:
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        with interrupted_by(connection.interrupt):
            entered.set()
            connection.execute("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n")

    asked = _begin(pool, "a", query)
    await _until(entered.is_set)
    await asyncio.sleep(0.05)
    asked.cancel()
    async with asyncio.timeout(LONG_S):
        await pool.run(lambda: None)
    pool.shutdown()

    assert asked.cancelled()


async def test_a_request_waits_no_longer_than_its_limit_and_a_task_in_the_background_does() -> None:
    """The limit is of those who are in haste; what a worker does for a tenant may take its time."""
    pool, gate = Pool("test", 1, limited=True), Gate()
    held = _begin(pool, "a", gate.work)
    await _until(lambda: gate.entered.acquire(blocking=False))
    at_leisure = _begin(pool, "b", lambda: None)
    with pytest.raises(TookTooLong):
        await asyncio.create_task(_as("b", partial(pool.run, lambda: None), limit_s=0.05))
    gate.let_go()
    await asyncio.gather(held, at_leisure)
    pool.shutdown()
