"""An erasure of entries that is killed at the n-th point, and the next one after it. Run as a program of its own.

    python -m tests.support.erasure_kill URL FIRST STEP

Points are each statement and each commit. Every point has a thread of its own: a child erases what it said and is
killed by SIGKILL at its point, a second one says what it finds, a third one erases again. The parent has no threads,
so it can fork.
"""

import json
import os
import sys
from functools import partial
from typing import Any

from sqlalchemy import Connection, Engine, event, select

from tests.conformance.compacting import Compacting
from tests.support.compaction_kill import Counter, forked
from tests.support.factories import TENANT
from threadmark.compaction import migrate
from threadmark.compaction.erase import entry_erasure, erased_places, row_erasure
from threadmark.compaction.ledger import totals_of
from threadmark.compaction.store import ledger_rows, orders
from threadmark.compaction.tables import METADATA
from threadmark.state import migrate as migrate_state
from threadmark.state import open_engine

SECRET = "Never write to {word}-77120 at {word}@secret.example, or pay it $77,120."
POINT_COUNT_MAX = 2_000
#: So few that there are several batches to die between.
BATCH_COUNT = 5


async def talk(work: Compacting, thread_id: str, word: str) -> dict[str, Any]:
    """A compacted thread with a secret; its seq."""
    await work.store.bury_all()
    await work.thread(2, thread_id)
    seq = await work.say(thread_id, SECRET.format(word=word)) - 2
    for _ in range(3):
        await work.say(thread_id)
    await work.compact(thread_id, key=thread_id)
    return {"seq": seq, **await look(work, thread_id, word)}


async def look(work: Compacting, thread_id: str, word: str) -> dict[str, Any]:
    """Whether the ledgers verify and their counts are right, and which tables of compaction have the word."""
    checks = await work.service.verify_thread(TENANT, thread_id)
    counts = []
    for each in checks:
        ledger = await work.store.read(partial(ledger_rows.read_rows, compaction_id=each.compaction_id))
        done = await work.store.read(partial(orders.find_compaction, compaction_id=each.compaction_id))
        counts.append(done is not None and done.totals == totals_of(ledger))

    def having(connection: Connection) -> list[str]:
        tables = [table for name, table in METADATA.tables.items() if "compaction" in name]
        return [table.name for table in tables if word in repr(connection.execute(select(table)).all()).casefold()]

    return {
        "damages": [each.damage for each in checks],
        "is_counted": counts,
        "having": await work.store.read(having),
    }


async def erase(work: Compacting, thread_id: str, word: str, seq: int, counter: Counter) -> dict[str, Any]:
    """Erase what the entry said."""
    event.listen(Engine, "before_cursor_execute", counter.point)
    event.listen(Engine, "commit", counter.point)
    await work.service.erase(TENANT, thread_id, [seq])
    return {"points": counter.count, **await look(work, thread_id, word)}


def main() -> None:
    """Kill at every `step`-th point from `first` on."""
    erased_places.PLACE_COUNT = row_erasure.ROW_COUNT = BATCH_COUNT
    entry_erasure.STATEMENT_COUNT = entry_erasure.ANALYSIS_COUNT = BATCH_COUNT
    url, first, step = sys.argv[1], *map(int, sys.argv[2:])
    engine = open_engine(url, write=True)
    migrate_state(engine)
    migrate(engine)
    engine.dispose()
    for fatal in range(first, POINT_COUNT_MAX, step):
        name, word = f"thread-{fatal}", f"canary{fatal}x"
        _, talked = forked(url, partial(talk, thread_id=name, word=word))
        doomed = partial(erase, thread_id=name, word=word, seq=talked["seq"])
        status, said = forked(url, partial(doomed, counter=Counter(fatal)))
        if not os.WIFSIGNALED(status):
            print(json.dumps({"talked": talked, "end": said}), flush=True)
            return
        _, found = forked(url, partial(look, thread_id=name, word=word))
        _, again = forked(url, partial(doomed, counter=Counter(0)))
        print(json.dumps({"point": fatal, "found": found, "again": again}), flush=True)


if __name__ == "__main__":
    main()
