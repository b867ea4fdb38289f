"""The indexer: brings index entries up to date from the outbox. Everything it does can be done again."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime

from sqlalchemy import Connection

from threadmark.memory.background_task import BackgroundTask
from threadmark.memory.embedders.embedder import Embedder, checked, space_name
from threadmark.memory.errors import EmbedderFailed
from threadmark.memory.index.index import Entry, Index, Vector
from threadmark.memory.index.index_documents import IndexDocument, index_documents
from threadmark.memory.model.instants import to_us
from threadmark.memory.store.database import Database
from threadmark.memory.store.outbox import Due, due, put_off, settle
from threadmark.memory.store.spaces import Space, live

__all__ = ["BATCH_COUNT_MAX", "Indexer", "dimension_of", "embedded"]

BATCH_COUNT_MAX = 256
CHOKED_COUNT_MAX = 3
#: How long the loop rests when nothing woke it: what another process wrote is indexed within this time.
REST_S = 0.5


class Indexer:
    """Applies the outbox to every live space. `clock` tells the time of back-offs."""

    def __init__(self, database: Database, index: Index, embedder: Embedder, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._index = index
        self._embedder = embedder
        self._clock = clock
        self._woken = asyncio.Event()
        #: Held while the index changes, so that an entry read before an erasure is not put after it.
        self.busy = asyncio.Lock()
        #: Whether the background task has nothing to do and waits for a wake-up.
        self.is_resting = False
        self._own = BackgroundTask("the memory index", self.run, self._rest)

    def start(self) -> None:
        """Keep draining in the background until `stop`: for an owner that has no supervisor to `run` it."""
        self._own.start()

    def wake(self) -> None:
        """Something was written."""
        self._woken.set()

    async def stop(self) -> None:
        """End the background task; what is left stays in the outbox."""
        await self._own.stop()

    async def drain(self) -> int:
        """Apply everything that is due and return how many entries were brought up to date.

        Raises IndexUnavailable with the outbox as it was, up to the batch that failed.
        """
        total = 0
        async with self.busy:
            while batch := await self._database.read(lambda c: due(c, self._now(), BATCH_COUNT_MAX)):
                total += await self._apply(batch)
        return total

    async def run(self, completed: Callable[[], None] = lambda: None) -> None:
        """Drain whenever something was written, until cancelled; `completed` is called after each round.

        Raises what a round raises. The outbox keeps what was not applied, so it can be run again.
        """
        while True:
            await self.drain()
            completed()
            self._woken.clear()
            await self._rest()

    async def _rest(self) -> None:
        self.is_resting = True
        with suppress(TimeoutError):
            async with asyncio.timeout(REST_S):
                await self._woken.wait()
        self.is_resting = False

    async def _apply(self, batch: Sequence[Due]) -> int:
        numbers = [each.entry for each in batch]
        # The spaces are read before the rows: a space that begins later is filled from rows at least as new.
        spaces = await self._database.read(live)
        found = await self._database.read(lambda c: index_documents(c, numbers))
        gone = sorted(set(numbers) - {each.number for each in found})
        vectors, failed = await embedded(self._embedder, found)
        for space in spaces:
            await self._index.open(space.name, dimension_of(space.name))
            await self._index.put(space.name, self.entries(space, found, vectors))
            await self._index.remove(space.name, gone)
        done = [each for each in batch if each.entry not in failed]

        def finish(connection: Connection) -> None:
            settle(connection, done)
            put_off(connection, failed, batch, self._now())

        await self._database.write(finish)
        return len(done)

    def entries(self, space: Space, found: Sequence[IndexDocument], vectors: dict[int, Vector]) -> list[Entry]:
        """The entries that can be made for a space."""
        if not self.can_embed(space):
            return [each.entry(None) for each in found]
        return [each.entry(vectors[each.number]) for each in found if each.number in vectors]

    def can_embed(self, space: Space) -> bool:
        """Whether this embedder's vectors live in that space."""
        return space.name.startswith(space_name(self._embedder) + "-g")

    def _now(self) -> int:
        return to_us(self._clock())


def dimension_of(space: str) -> int:
    """The dimension that a space's name tells (`<embedder>-<dimension>-<tokenizer>-g<number>`)."""
    return int(space.rsplit("-", 3)[1])


async def embedded(embedder: Embedder, found: Sequence[IndexDocument]) -> tuple[dict[int, Vector], dict[int, str]]:
    """Vectors by number, and by number what the others failed by. One bad text does not stop the rest."""
    vectors: dict[int, Vector] = {}
    failed: dict[int, str] = {}
    waiting = [list(found)] if found else []
    choked = 0
    while waiting:
        part = waiting.pop()
        try:
            raw = await embedder.embed([each.dense_text for each in part])
            units = checked(raw, len(part), embedder.dimension)
        except EmbedderFailed as error:
            # Halve, to find the one text that it chokes on; an endpoint that is down fails on everything, so after
            # a few single texts the rest is not tried any more.
            choked += len(part) == 1
            if len(part) == 1 or choked >= CHOKED_COUNT_MAX:
                failed.update((each.number, str(error)) for each in part)
            else:
                waiting += [part[: len(part) // 2], part[len(part) // 2 :]]
            continue
        for each, unit in zip(part, units, strict=True):
            if unit is None:
                failed[each.number] = "the embedder gave a vector that must not be stored"
            else:
                vectors[each.number] = unit
    return vectors, failed
