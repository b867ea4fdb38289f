"""A deletion of a thread that is killed at the n-th point, and what is found after it. Run as a program of its own.

    python -m tests.support.deletion_kill URL

Points are each statement and each commit. Every point has a thread of its own: a child deletes it and is killed by
SIGKILL at its point, a second one says what it finds, a third one sweeps or deletes it again, in turn. The parent has
no threads, so it can fork.
"""

import json
import os
import sys
from functools import partial
from typing import Any

from sqlalchemy import Connection, Engine, event, func, select

from tests.conformance.compacting import Compacting
from tests.conformance.store import a_receipt
from tests.support.compaction_kill import Counter, forked
from tests.support.factories import TENANT, a_submission
from threadmark.compaction import migrate, remove_thread_rows
from threadmark.compaction import tables as compaction_tables
from threadmark.db import removal
from threadmark.state import (
    Reply,
    RunSubmission,
    find_thread,
    finish_deletions,
    open_engine,
    tables,
    unfinished_deletions,
)
from threadmark.state import migrate as migrate_state

TURN_COUNT = 3
#: Rows of a batch: so few that a deletion has several batches to die between.
ROW_COUNT = 8
POINT_COUNT_MAX = 400


def rows_about(connection: Connection, thread: int) -> int:
    """Rows with the number of a thread, in every table that has such numbers."""
    every = [*tables.METADATA.sorted_tables, *compaction_tables.METADATA.sorted_tables]
    about = [each for each in every if "thread" in each.c]
    counts = [select(func.count()).select_from(each).where(each.c.thread == thread) for each in about]
    return sum(connection.execute(count).scalar_one() for count in counts)


def a_request(key: str, thread_id: str | None = None) -> RunSubmission:
    """A run that is due long after the test, with a key."""
    return a_submission("more", thread_id=thread_id, receipt=a_receipt(key), delay_us=10**12)


async def look(work: Compacting, thread_id: str, number: int) -> dict[str, Any]:
    """Whether the thread is found, whether it is whole then, and how many rows there are with its number."""
    read = work.store.read
    found = await read(partial(find_thread, tenant_id=TENANT, thread_id=thread_id))
    return {
        "is_found": found is not None,
        "damages": [] if found is None else [str(each) for each in await work.store.journal.verify(found)],
        "rows": await read(partial(rows_about, thread=number)),
        "unfinished": len(await read(partial(unfinished_deletions, count_max=1_000))),
    }


async def talk(work: Compacting, thread_id: str) -> dict[str, Any]:
    """A thread with some turns, a view, and a run that has not begun."""
    await work.store.bury_all()
    thread = await work.thread(TURN_COUNT, thread_id)
    await work.compact(thread_id, key=thread_id)
    await work.store.submission(a_request(thread_id, thread_id=thread_id))
    return {"number": thread.number, **await look(work, thread_id, thread.number)}


async def delete(work: Compacting, thread_id: str, number: int, counter: Counter) -> dict[str, Any]:
    """Delete the thread, and ask with the key of its last run for a new one elsewhere."""
    event.listen(Engine, "before_cursor_execute", counter.point)
    event.listen(Engine, "commit", counter.point)
    await work.delete(thread_id)
    return {"points": counter.count, **await look(work, thread_id, number)}


async def sweep(work: Compacting, thread_id: str, number: int) -> dict[str, Any]:
    """What a worker does every now and then."""
    left = await work.store.read(partial(unfinished_deletions, count_max=1_000))
    await finish_deletions(work.store.database, left, remove_thread_rows)
    return await look(work, thread_id, number)


async def ask_again(work: Compacting, thread_id: str) -> dict[str, Any]:
    """Whether the key of the run names a new request: not while its thread is there."""
    answer = await work.store.submission(a_request(thread_id))
    return {"is_replayed": isinstance(answer.replay, Reply)}


def main() -> None:
    """Kill at every point until a deletion has no more of them."""
    removal.ROW_COUNT = ROW_COUNT
    url = sys.argv[1]
    engine = open_engine(url, write=True)
    migrate_state(engine)
    migrate(engine)
    engine.dispose()
    for fatal in range(1, POINT_COUNT_MAX):
        name = f"thread-{fatal}"
        _, before = forked(url, partial(talk, thread_id=name))
        mine = {"thread_id": name, "number": before["number"]}
        status, said = forked(url, partial(delete, **mine, counter=Counter(fatal)))
        if not os.WIFSIGNALED(status):
            print(json.dumps({"end": said}), flush=True)
            return
        _, found = forked(url, partial(look, **mine))
        _, asked = forked(url, partial(ask_again, thread_id=name))
        again = partial(sweep, **mine) if fatal % 2 else partial(delete, **mine, counter=Counter(0))
        _, after = forked(url, again) if found["is_found"] is False and found["unfinished"] else (0, found)
        print(json.dumps({"before": before, "found": found, "asked": asked, "after": after}), flush=True)


if __name__ == "__main__":
    main()
