"""How long a compaction, a copy and an erasure of a long thread hold SQLite's write lock at a stretch.

    python -m bench.long_writes [MESSAGES]

Beside the longest commit of each stands, from the same run, how long all of its commits held the lock together: that
is the least that one commit would have held it.
"""

import asyncio
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event

from bench.compaction import row
from bench.long_threads import marked
from bench.parts.shelf import TENANT, Shelf
from bench.parts.threads import thread
from threadmark.compaction import CompactionStatus, Policy, forget_thread, remove_thread_rows
from threadmark.state import Database, Deletion, copy_thread, delete_thread, finish_deletions, fold_thread

MESSAGE_COUNT = 5_000
#: More than a message has on average.
MESSAGE_TOKENS = 300
#: One of so many messages is erased.
ERASED_EVERY = 50
POLICY = Policy(keep_last_turns=1, min_gain=0.0, summary_tokens=200)
_WRITER = "threadmark-writer"


@contextmanager
def held() -> Iterator[list[float]]:
    """How long each transaction of a writer holds the lock meanwhile (seconds), up to its commit."""
    times: list[float] = []
    began: dict[str, float] = {}

    def begin(_: Any) -> None:
        began[threading.current_thread().name] = time.perf_counter()

    def end(_: Any) -> None:
        name = threading.current_thread().name
        if name.startswith(_WRITER) and name in began:
            times.append(time.perf_counter() - began.pop(name))

    event.listen(Engine, "begin", begin)
    event.listen(Engine, "commit", end)
    try:
        yield times
    finally:
        event.remove(Engine, "begin", begin)
        event.remove(Engine, "commit", end)


async def measured(name: str, work: Awaitable[object]) -> None:
    """Do the work, and print what it cost."""
    start = time.perf_counter()
    with held() as times:
        await work
    took = time.perf_counter() - start
    longest, together = max(times) * 1000, sum(times) * 1000
    row(name, f"{longest:.0f} ms", f"{together:.0f} ms in {len(times)} commits", f"{took:.1f} s")


async def delete(database: Database) -> None:
    """As `DELETE /threads/{id}` does it."""

    def hide(connection: Connection) -> Deletion:
        deletion = delete_thread(connection, TENANT, "long")
        forget_thread(connection, deletion.thread)
        return deletion

    await finish_deletions(database, [await database.write(hide)], remove_thread_rows)


async def main(message_count: int) -> None:
    """The four works, one after the other, on one thread."""
    with tempfile.TemporaryDirectory() as folder:
        shelf = Shelf(Path(folder))
        entries = marked(thread(message_count * MESSAGE_TOKENS, 1))[:message_count]
        assert len(entries) == message_count
        await shelf.keep("long", entries)
        row("work", "longest commit", "all commits", "whole work")

        async def compact() -> None:
            done = await shelf.compact("long", POLICY)
            assert done.status is CompactionStatus.COMMITTED

        await measured(f"compaction of {message_count:,} messages", compact())
        copying = copy_thread(
            shelf.database,
            TENANT,
            "long",
            now_us=shelf.parts.now_us,
            look=fold_thread,
            receipt=lambda _: None,
        )
        await measured("copy", copying)
        seqs = range(1, message_count, ERASED_EVERY)
        await measured(f"erasure of {len(seqs)} messages", shelf.service.erase(TENANT, "long", seqs))
        everything = shelf.service.erase(TENANT, "long", range(1, message_count + 1))
        await measured("erasure of all messages", everything)
        await shelf.compact("long", POLICY)
        await measured("retention of words", shelf.service.hash_words(timedelta(seconds=-1), 10))

        await measured("deletion of the thread", delete(shelf.database))
        await shelf.database.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else MESSAGE_COUNT))
