"""The keeper of the index ends on a stop, whatever wakes it at that moment."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.waiting import wait_until
from threadmark.memory import Database, HashedEmbedder, MemoryIndex, migrate
from threadmark.memory.index.indexer import Indexer

END_S_MAX = 10


@pytest.mark.parametrize("step_count", range(4))
async def test_a_wake_up_and_a_stop_in_the_same_moment_end_it(tmp_path: Path, step_count: int) -> None:
    """At any step of the event loop behind the wake-up."""
    url = f"sqlite:///{tmp_path}/memory.db"
    migrate(url)
    database = Database.open(url)
    indexer = Indexer(database, MemoryIndex(), HashedEmbedder(), lambda: datetime.now(UTC))
    indexer.start()
    await wait_until(lambda: indexer.is_resting, description="the keeper to rest")

    indexer.wake()
    for _ in range(step_count):
        await asyncio.sleep(0)
    async with asyncio.timeout(END_S_MAX):
        await indexer.stop()
    await database.close()
