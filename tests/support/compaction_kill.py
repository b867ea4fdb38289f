"""A compaction that is killed at the n-th point, and the recovery after it. Run as a program of its own.

    python -m tests.support.compaction_kill URL FIRST STEP [ROUNDS]

Points are each statement, each commit, and each call of the model before and after it. Every point has a thread of its
own: a child compacts it and is killed by SIGKILL at its point, a second one says what it finds, a third one goes on.
The parent has no threads, so it can fork.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine, event, func, select

from tests.conformance.compacting import Compacting
from tests.conformance.store import Store
from tests.support.bad_summarisers import Recorder
from tests.support.factories import TENANT
from threadmark.compaction import CompactionService, Order, Policy, SummaryPrompt, SummaryReply, migrate, tables
from threadmark.compaction.store import rows_ahead
from threadmark.state import migrate as migrate_state
from threadmark.state import open_engine

POINT_COUNT_MAX = 1_000
TURN_COUNT = 6
#: Rows of a batch: so few that a ledger has several batches to die between.
BATCH_COUNT = 10
POLICY = Policy(keep_last_turns=1, min_gain=0.0, chunk_tokens=500, appendix_tokens=2_000)


class Counter:
    """Counts points, and kills the process at one of them; 0 kills never."""

    def __init__(self, fatal: int) -> None:
        self.fatal = fatal
        self.count = 0

    def point(self, *_: Any, **__: Any) -> None:
        """One more point."""
        self.count += 1
        if self.count == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)


class Watched(Recorder):
    """A model with a point before and after each call."""

    def __init__(self, counter: Counter) -> None:
        super().__init__()
        self._counter = counter

    async def summarise(self, prompt: SummaryPrompt) -> SummaryReply:
        """Every third line of the record."""
        self._counter.point()
        reply = await super().summarise(prompt)
        self._counter.point()
        return reply


async def talk(work: Compacting, thread_id: str) -> dict[str, Any]:
    """A thread with some turns."""
    await work.store.bury_all()
    await work.thread(TURN_COUNT, thread_id)
    return await look(work, thread_id)


async def look(work: Compacting, thread_id: str) -> dict[str, Any]:
    """What is there: the view by its hash, and whether all that explains it is there too."""
    shown, thread = await work.service.views.show(TENANT, thread_id), await work.seen(thread_id)
    done = await work.service.compactions.of_thread(TENANT, thread_id)
    committed = [each for each in done if each.ordinal]
    rows = [
        drop
        for each in committed
        async for drop in work.service.drops.ledger(TENANT, each.compaction_id)
        if drop.row.status != "introduced"
    ]
    column = tables.ledger_row.c
    all_rows = select(func.count()).select_from(tables.ledger_row).where(column.thread == thread.number)
    row_count = await work.store.read(lambda connection: connection.execute(all_rows).scalar_one())
    checks = await work.service.verify_thread(TENANT, thread_id)
    return {
        "ahead": row_count - sum(each.row_count for each in checks),
        "hash": shown.rendered.render_hash,
        "statuses": [str(each.status) for each in done],
        "ledgers": len(shown.kept.ledgers),
        "views": len(await work.service.views.of_thread(TENANT, thread_id)),
        "journaled": [each.kind for each in await work.store.entries(thread.number)].count("view_changed"),
        "rows": len(rows) == sum(counts["total"] for each in committed for counts in each.totals.values()),
        "damages": [each.damage for each in checks if each.damage],
        "words": sum(str(part.content).count("Reply ") for part in shown.rendered.parts),
    }


async def compact(work: Compacting, thread_id: str, counter: Counter) -> dict[str, Any]:
    """Order and perform, as a redelivery does it."""
    event.listen(Engine, "before_cursor_execute", counter.point)
    event.listen(Engine, "commit", counter.point)
    model = Watched(counter)
    order, _ = await work.service.compactions.begin(TENANT, thread_id, Order(key=thread_id, policy=POLICY))
    await work.service.compactions.perform(order.compaction_id, holder="worker", summariser=model)
    # Points too: a death here is a death right after the commit.
    seen = await look(work, thread_id)
    return {"points": counter.count, "asked": len(model.prompts), **seen}


def forked(url: str, act: Callable[[Compacting], Awaitable[dict[str, Any]]]) -> tuple[int, dict[str, Any]]:
    """Live in a child; how it ended, and what it said."""

    async def live() -> dict[str, Any]:
        store = Store.open(url)
        try:
            service = CompactionService(
                store.database, now=lambda: datetime.now(UTC), fold_cache=store.journal.fold_cache
            )
            return await act(Compacting(store, service))
        finally:
            await store.database.close()

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            os.write(writing, json.dumps(asyncio.run(live())).encode())
        except BaseException as error:
            os.write(writing, json.dumps({"error": repr(error)}).encode())
        os._exit(0)
    os.close(writing)
    said = b""
    while part := os.read(reading, 65_536):
        said += part
    os.close(reading)
    _, status = os.waitpid(child, 0)
    return status, json.loads(said or b"{}")


def kill_in_turn(url: str, number: int, points: range) -> None:
    """Kill at each of the points, until the compaction has no more of them."""
    for fatal in points:
        name = f"thread-{number}-{fatal}"
        _, before = forked(url, lambda work, name=name: talk(work, name))  # type: ignore[misc]
        status, said = forked(url, lambda work, name=name, fatal=fatal: compact(work, name, Counter(fatal)))  # type: ignore[misc]
        if not os.WIFSIGNALED(status):
            print(json.dumps({"before": before, "end": said}), flush=True)
            return
        _, found = forked(url, lambda work, name=name: look(work, name))  # type: ignore[misc]
        begun = time.monotonic()
        _, after = forked(url, lambda work, name=name: compact(work, name, Counter(0)))  # type: ignore[misc]
        after["seconds"] = time.monotonic() - begun
        print(json.dumps({"point": fatal, "before": before, "found": found, "recovered": after}), flush=True)


def main() -> None:
    """Kill at every `step`-th point from `first` on, in so many rounds."""
    rows_ahead.BATCH_COUNT = BATCH_COUNT
    url, first, step, *rounds = sys.argv[1], *map(int, sys.argv[2:])
    engine = open_engine(url, write=True)
    migrate_state(engine)
    migrate(engine)
    engine.dispose()
    for number in range(rounds[0] if rounds else 1):
        kill_in_turn(url, number, range(first, POINT_COUNT_MAX, step))


if __name__ == "__main__":
    main()
