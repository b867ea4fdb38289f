"""What each process of the test of one file does: read, then write what was read plus one."""

import asyncio
from functools import partial

from sqlalchemy import Connection

from tests.conformance.store import Store
from tests.support.factories import TENANT
from threadmark.state import get_thread, label_thread

__all__ = ["count_up"]


def count_up(url: str, thread_id: str, round_count: int, task_count: int) -> int:
    """Count a label up in `task_count` tasks at once, `round_count` times each; how often the writer committed."""
    return asyncio.run(_count_up(url, thread_id, round_count, task_count))


async def _count_up(url: str, thread_id: str, round_count: int, task_count: int) -> int:
    store = Store.open(url)
    try:

        async def count() -> None:
            for _ in range(round_count):
                await store.write(partial(_one_up, thread_id=thread_id))

        await asyncio.gather(*(count() for _ in range(task_count)))
        return store.database.commit_count
    finally:
        await store.database.close()


def _one_up(connection: Connection, thread_id: str) -> None:
    thread = get_thread(connection, TENANT, thread_id)
    label_thread(connection, thread.number, {"count": thread.metadata["count"] + 1}, now_us=0)
