"""An import that is killed at the n-th point, and the sweep after it. Run as a program of its own.

    python -m tests.support.import_kill FOLDER FIRST STEP

Points are each statement, each commit and each change of the index. What the second child finds after a sweep is a JSON
line per point; then it imports the same lines again, and says what is there.
"""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from tests.support.memory_house import NOW, city, draft, house, moment, remembered, texts
from tests.support.memory_kill import POINT_COUNT_MAX, Counter, Watched, born, forked
from tests.support.staged_imports import TENANT, row_counts
from threadmark.memory import HashedEmbedder, Recollection, Which
from threadmark.memory.imports import importer
from threadmark.memory.store.database import Database


def opened(folder: Path, counter: Counter, waited: timedelta) -> Recollection:
    """The memory in `folder`, so much later."""
    database = Database.open(f"sqlite:///{folder}/memory.db")
    index = Watched(folder / "index", counter)
    return Recollection(database, index, HashedEmbedder(dimension=16), clock=lambda: NOW + waited)


async def life(folder: Path, fatal: int) -> dict[str, Any]:
    """Sweep what a life before left, see what is there, import and index; what is there at the end."""
    counter = Counter(fatal)
    memory = opened(folder, counter, timedelta(0) if fatal else timedelta(seconds=61))
    importer.LINE_COUNT_MIN = importer.LINE_COUNT_MAX = 3
    event.listen(Engine, "before_cursor_execute", counter.point)
    event.listen(Engine, "commit", counter.point)
    await memory.open(background=False)
    await memory.sweep(now=NOW, recalls_before=NOW - timedelta(days=99))
    await memory.index_pending()
    swept = await kept(memory)
    seen = sorted(each.text for _, each in await memory.list(scope=TENANT, which=Which.ALL))
    recalled = sorted(await texts(memory, "lives likes tea"))
    lines = await asyncio.to_thread((folder.parent / "lines").read_text)
    await memory.import_(lines.splitlines(), scope=TENANT)
    await memory.index_pending()
    found = {
        "swept": swept,
        "seen": seen,
        "recalled_first": recalled,
        "agrees": (await memory.verify()).agrees,
        "rows": await kept(memory),
        "recalled": sorted(await texts(memory, "lives likes tea")),
        "is_equal": without_recalls(await memory.export(scope=TENANT)) == lines.splitlines(),
    }
    await memory.close()
    return found


async def kept(memory: Recollection) -> dict[str, int]:
    """How many rows the tables have; what was asked here, and is logged at any moment, left out."""
    return {name: count for name, count in (await row_counts(memory)).items() if name != "memory_recall"}


def without_recalls(lines: Sequence[str]) -> list[str]:
    """An export without what was asked."""
    return [line for line in lines if not line.startswith('{"kind":"recall"')]


async def tell(folder: Path) -> None:
    """Write the export of another memory beside `folder`."""
    elsewhere = folder / "elsewhere"
    shutil.rmtree(elsewhere, ignore_errors=True)
    elsewhere.mkdir(parents=True)
    async with house(f"sqlite:///{elsewhere}/memory.db") as other:
        drafts = [draft(f"likes tea {number}", origin=moment(number)) for number in range(4)]
        await remembered(other, city("Oslo", origin=moment(8)), *drafts, city("Bergen", at=NOW, origin=moment(9)))
        (folder / "lines").write_text("\n".join(await other.export(scope=TENANT)))


def main() -> None:
    """Kill at every `step`-th point from `first` on."""
    folder, first, step = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    child = os.fork()
    if child == 0:
        # In a process of its own: what forks has no threads.
        asyncio.run(tell(folder))
        os._exit(0)
    os.waitpid(child, 0)
    for fatal in range(first, POINT_COUNT_MAX, step):
        born(folder / "life")
        status, said = forked(folder / "life", fatal, life)
        if not os.WIFSIGNALED(status):
            print(json.dumps({"end": json.loads(said)}), flush=True)
            return
        _, recovered = forked(folder / "life", 0, life)
        print(json.dumps({"point": fatal, "recovered": json.loads(recovered)}), flush=True)


if __name__ == "__main__":
    main()
