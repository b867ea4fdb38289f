"""A thread that is analysed by processes that are killed at the n-th point, and by one that is not.

    python -m tests.support.learning_kill URL FIRST STEP

Points are each statement and each commit. Every point has a thread of its own: a child is killed at it, a second one
says what it finds, a third one goes on and compacts.
"""

import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from sqlalchemy import Engine, event

from tests.conformance.compacting import Compacting
from tests.support.compaction_kill import POINT_COUNT_MAX, Counter, forked
from threadmark.compaction import migrate
from threadmark.compaction.loading import prior_analysis
from threadmark.compaction.store import ledger_rows
from threadmark.state import migrate as migrate_state
from threadmark.state import open_engine

TURN_COUNT = 4
#: Messages of a batch: few, so that there are many commits.
BATCH = 2


async def talk(work: Compacting, name: str) -> dict[str, Any]:
    """A thread with some turns."""
    await work.store.bury_all()
    await work.thread(TURN_COUNT, name)
    return {}


async def learn(work: Compacting, name: str, counter: Counter) -> dict[str, Any]:
    """Analyse it, as the handler of the task does."""
    thread = await work.seen(name)
    folded = await work.store.journal.fold(thread)
    event.listen(Engine, "before_cursor_execute", counter.point)
    event.listen(Engine, "commit", counter.point)
    prior_analysis.KEPT_TOGETHER = BATCH
    return dict(msgspec.to_builtins(await work.service.learn(thread, folded)))


async def look(work: Compacting, name: str) -> dict[str, Any]:
    """How many analyses are kept; each is whole, or reading it would raise."""
    thread = await work.seen(name)
    return {"kept": len(await work.store.read(lambda connection: ledger_rows.read_analyses(connection, thread.number)))}


async def go_on(work: Compacting, name: str) -> dict[str, Any]:
    """Analyse what is left, and compact."""
    learnt = await learn(work, name, Counter(0))
    done = await work.compact(name, key=name)
    return {**learnt, "status": str(done.status), **await look(work, name)}


def main() -> None:
    """Kill at every `step`-th point from `first` on."""
    url, first, step = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    engine = open_engine(url, write=True)
    migrate_state(engine)
    migrate(engine)
    engine.dispose()
    for fatal in range(first, POINT_COUNT_MAX, step):
        name = f"thread-{fatal}"

        def act(what: Callable[..., Awaitable[dict[str, Any]]], *more: Any, name: str = name) -> tuple[int, Any]:
            return forked(url, lambda work: what(work, name, *more))

        act(talk)
        status, said = act(learn, Counter(fatal))
        if not os.WIFSIGNALED(status):
            print(json.dumps({"end": said}), flush=True)
            return
        print(json.dumps({"found": act(look)[1], "recovered": act(go_on)[1]}), flush=True)


if __name__ == "__main__":
    main()
