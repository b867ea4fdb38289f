"""Memory's threads: whatever one tenant has asked for, another gets a thread."""

import asyncio
import threading

import pytest

from threadmark.db.execution.pools import Pool, act_for
from threadmark.memory.pools import EXPORTS, IMPORTS, QUESTIONS, TEXTS


@pytest.mark.parametrize("pool", [QUESTIONS, TEXTS, EXPORTS, IMPORTS], ids=["questions", "texts", "exports", "imports"])
async def test_work_of_one_tenant_leaves_a_thread_to_others(pool: Pool) -> None:
    """A hundred texts of one, and a question of another that is answered before any of them is done."""
    may_end = threading.Event()

    async def work_long() -> bool:
        act_for("large")
        return await pool.run(lambda: may_end.wait(60))

    async def work_small() -> str:
        act_for("small")
        return await pool.run(lambda: "done")

    long_works = [asyncio.create_task(work_long()) for _ in range(100)]
    await asyncio.sleep(0)  # they are queued
    try:
        async with asyncio.timeout(30):
            assert await asyncio.create_task(work_small()) == "done"
        assert not any(each.done() for each in long_works)
    finally:
        may_end.set()
        await asyncio.gather(*long_works)
