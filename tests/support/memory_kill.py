"""A life of memory that is killed at the n-th point, and the recovery after it. Run as a program of its own.

    python -m tests.support.memory_kill FOLDER FIRST STEP

Points are what the process does to the outside: each statement, each commit, and each change of the index before and
after it happened. A child lives until its point and is killed by SIGKILL; a second child recovers, tells the same story
to its end, and says what it found, as one JSON line per point. The parent has no threads, so it can fork.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from tests.support.memory_house import HOME, NOW, city, draft, moment, texts
from threadmark.memory import EdgeIndex, Forget, HashedEmbedder, Recollection, Selector, Which, migrate
from threadmark.memory.index.index import Entry
from threadmark.memory.store.database import Database

Life = Callable[[Path, int], Coroutine[Any, Any, dict[str, Any]]]
POINT_COUNT_MAX = 5_000


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


class Watched(EdgeIndex):
    """The embedded index, with a point before and after each change."""

    def __init__(self, folder: Path, counter: Counter) -> None:
        super().__init__(folder)
        self._counter = counter

    async def put(self, space: str, entries: Sequence[Entry]) -> None:
        """A point before, and one after."""
        self._counter.point()
        await super().put(space, entries)
        self._counter.point()

    async def remove(self, space: str, numbers: Sequence[int]) -> None:
        """A point before, and one after."""
        self._counter.point()
        await super().remove(space, numbers)
        self._counter.point()


async def life(folder: Path, fatal: int) -> dict[str, Any]:
    """Remember, index, change, erase; what is there at the end."""
    counter = Counter(fatal)
    memory = Recollection(
        Database.open(f"sqlite:///{folder}/memory.db"),
        Watched(folder / "index", counter),
        HashedEmbedder(dimension=16),
        clock=lambda: NOW,
    )
    event.listen(Engine, "before_cursor_execute", counter.point)
    event.listen(Engine, "commit", counter.point)
    await memory.open(background=False)
    await memory.remember(
        [city("Oslo", origin=moment(1), at=NOW - timedelta(days=9)), draft("likes tea", origin=moment(2))],
        scope=HOME,
        now=NOW,
    )
    await memory.index_pending()
    await memory.remember([city("Bergen", origin=moment(3))], scope=HOME, now=NOW)
    await memory.remember([draft("a secret", origin=moment(4, thread="secret"))], scope=HOME, now=NOW)
    await memory.index_pending()
    await memory.erase(Forget(source=Selector(thread_ref="secret")), tenant_id="acme", now=NOW)
    await memory.index_pending()
    agreement = await memory.verify()
    held = await memory.list(scope=HOME, which=Which.ALL)
    found = {
        "points": counter.count,
        "agrees": agreement.agrees,
        "rows": sorted([each.text, str(each.closing), len(each.provenance)] for _, each in held),
        "recalled": sorted(await texts(memory, "lives likes secret")),
    }
    await memory.close()
    return found


def born(folder: Path) -> None:
    """An empty memory."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    migrate(f"sqlite:///{folder}/memory.db")


def forked(folder: Path, fatal: int, life: Life = life) -> tuple[int, str]:
    """Live in a child; how it ended, and what it said."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            os.write(writing, json.dumps(asyncio.run(life(folder, fatal))).encode())
        except BaseException as error:
            os.write(writing, json.dumps({"error": repr(error)}).encode())
        os._exit(0)
    os.close(writing)
    said = b""
    while part := os.read(reading, 65_536):
        said += part
    os.close(reading)
    _, status = os.waitpid(child, 0)
    return status, said.decode()


def main() -> None:
    """Kill at every `step`-th point from `first` on."""
    folder, first, step = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for fatal in range(first, POINT_COUNT_MAX, step):
        born(folder)
        status, said = forked(folder, fatal)
        if not os.WIFSIGNALED(status):
            print(json.dumps({"end": json.loads(said)}), flush=True)
            return
        _, recovered = forked(folder, 0)
        print(json.dumps({"point": fatal, "recovered": json.loads(recovered)}), flush=True)


if __name__ == "__main__":
    main()
