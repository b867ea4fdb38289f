"""`threadmark verify`: recompute the hash chain of every journal, or of one; or compare memory with its index."""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator
from functools import partial

from threadmark.app.commands.common import open_state_database, settings_of
from threadmark.state import Database, Journal, Thread, every_thread

__all__ = ["run_verify"]

PAGE_COUNT = 200
PROGRESS_S = 1.0


def run_verify(arguments: argparse.Namespace) -> int:
    """Verify what the arguments name; 1 if something does not hold."""
    if arguments.what == "memory":
        # Not before: journals are verified without the index and what it loads.
        from threadmark.app.commands.memory_index import verify_memory  # noqa: PLC0415

        return verify_memory(arguments)
    return asyncio.run(_verify(arguments))


async def _verify(arguments: argparse.Namespace) -> int:
    async with open_state_database(settings_of(arguments)) as database:
        journal = Journal(database)
        thread_count = damaged_count = 0
        told_s = time.monotonic()
        async for thread in _threads(database, arguments.thread):
            thread_count += 1
            damages = await journal.verify(thread)
            damaged_count += bool(damages)
            for damage in damages:
                print(f"thread {thread.thread_id}, seq {damage.seq}: {damage.why}", flush=True)
            if time.monotonic() - told_s >= PROGRESS_S:
                told_s = time.monotonic()
                print(f"{thread_count} threads so far, {damaged_count} damaged", file=sys.stderr, flush=True)
    if arguments.thread is not None and not thread_count:
        print(f"there is no thread {arguments.thread}", file=sys.stderr)
        return 1
    print(f"{thread_count} threads, {damaged_count} damaged")
    return 1 if damaged_count else 0


async def _threads(database: Database, thread_id: str | None) -> AsyncIterator[Thread]:
    after = 0
    while page := await database.read(partial(every_thread, after=after, count_max=PAGE_COUNT)):
        for thread in page:
            if thread_id is None or thread.thread_id == thread_id:
                yield thread
        after = page[-1].number
