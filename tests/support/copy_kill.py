"""A copy of a thread that is killed at the n-th point, and what is found after it. Run as a program of its own.

    python -m tests.support.copy_kill URL

Points are each statement and each commit. Every point has a thread of its own: a child copies it and is killed by
SIGKILL at its point, a second one says what it finds and what is left when the time of unfinished copies is over, a
third one copies it again. The parent has no threads, so it can fork.
"""

import json
import os
import sys
from functools import partial
from typing import Any

from sqlalchemy import Engine, event, func, select

from tests.conformance.compacting import Compacting
from tests.support.compaction_kill import Counter, forked
from tests.support.factories import TENANT
from threadmark.compaction import migrate
from threadmark.state import (
    ThreadFilter,
    clear_copies,
    every_thread,
    expired_copies,
    fold,
    open_engine,
    search_threads,
    tables,
)
from threadmark.state import migrate as migrate_state
from threadmark.state.append import thread_copies

TURN_COUNT = 5
#: Entries of a batch: so few that a copy has several batches to die between.
BATCH_COUNT = 5
POINT_COUNT_MAX = 200


async def look(work: Compacting, thread_id: str) -> dict[str, Any]:
    """What there is: threads that are listed, whole copies among them, and entries that are of no listed thread."""
    read = work.store.read
    listed = await read(
        lambda connection: search_threads(
            connection, TENANT, ThreadFilter(), sort_by="created_at", descending=True, limit=1_000
        )
    )
    kept = await read(lambda connection: every_thread(connection, after=0, count_max=1_000))
    source = await work.seen(thread_id)
    said = fold(await work.store.entries(source.number)).messages
    copies = [each for each in listed if each.metadata.get("of") == thread_id and each.thread_id != thread_id]
    counted = select(func.count()).select_from(tables.entry)
    entry_count = await read(lambda connection: int(connection.execute(counted).scalar_one()))
    return {
        "copies": len(copies),
        "whole": [fold(await work.store.entries(each.number)).messages == said for each in copies],
        "damages": [str(damage) for each in copies for damage in await work.store.journal.verify(each)],
        "is_listed_alike": [each.number for each in kept] == sorted(each.number for each in listed),
        "hidden": entry_count - sum(each.head_seq for each in listed),
    }


async def talk(work: Compacting, thread_id: str) -> dict[str, Any]:
    """A thread with some turns."""
    await work.store.bury_all()
    await work.store.thread(thread_id, of=thread_id)
    await work.thread(TURN_COUNT, thread_id)
    return await look(work, thread_id)


async def copy(work: Compacting, thread_id: str, counter: Counter) -> dict[str, Any]:
    """Copy the thread."""
    event.listen(Engine, "before_cursor_execute", counter.point)
    event.listen(Engine, "commit", counter.point)
    await work.store.copy(thread_id)
    return {"points": counter.count, **await look(work, thread_id)}


async def sweep(work: Compacting, thread_id: str) -> dict[str, Any]:
    """What is left after the time of unfinished copies."""
    later_us = work.store.now_us() + (thread_copies.KEEP_S + 1) * 1_000_000
    await clear_copies(work.store.database, partial(expired_copies, now_us=later_us))
    return await look(work, thread_id)


def main() -> None:
    """Kill at every point until a copy has no more of them."""
    thread_copies.BATCH_COUNT = BATCH_COUNT
    url = sys.argv[1]
    engine = open_engine(url, write=True)
    migrate_state(engine)
    migrate(engine)
    engine.dispose()
    for fatal in range(1, POINT_COUNT_MAX):
        name = f"thread-{fatal}"
        forked(url, partial(talk, thread_id=name))
        status, said = forked(url, partial(copy, thread_id=name, counter=Counter(fatal)))
        if not os.WIFSIGNALED(status):
            print(json.dumps({"end": said}), flush=True)
            return
        _, found = forked(url, partial(look, thread_id=name))
        _, swept = forked(url, partial(sweep, thread_id=name))
        _, again = forked(url, partial(copy, thread_id=name, counter=Counter(0)))
        print(json.dumps({"point": fatal, "found": found, "swept": swept, "again": again}), flush=True)


if __name__ == "__main__":
    main()
