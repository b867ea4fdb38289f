"""What a process has of memory: opened beside everything else and kept up in the background; no start waits for it.

A memory that is down, not migrated yet, or whose index belongs to another process ends nothing: its calls raise
Unavailable or answer from the database, and the side goes on trying.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import partial

from threadmark.memory import (
    ClaimedIndex,
    Database,
    EdgeIndex,
    ExternalCopies,
    Index,
    IndexUnavailable,
    MemoryIndex,
    Recollection,
    choose_embedder,
    owned_index,
    server_index,
)
from threadmark.workers.migration import memory_gaps
from threadmark.workers.pools import UPKEEP
from threadmark.workers.settings.settings import Settings
from threadmark.workers.supervisor import Loop, Supervisor

__all__ = ["INDEX_FOLDER", "MemorySide", "new_recollection", "open_memory"]

INDEX_FOLDER = "memory-index"
#: How often an index without an owner is claimed, and an erasure that waits for it is taken up.
KEEP_S = 2.0
#: How long a start waits for memory to be ready; then it goes on without.
START_S = 5.0
#: What has expired must be off the disk within a day, also when sweeps fail for hours.
SWEEP_EVERY_S = 60 * 60.0
_LOG = logging.getLogger("threadmark.memory")


def new_recollection(
    settings: Settings, now: Callable[[], datetime], copies: ExternalCopies | None = None
) -> tuple[Recollection, ClaimedIndex | None]:
    """Memory as the settings say, and its index if that takes a claim; nothing is read, loaded or called yet."""
    index, owned = _index(settings)
    embedder = choose_embedder(
        settings.embedder,
        api_key=settings.openai_api_key,
        base_url=settings.embedder_url or settings.openai_base_url,
    )
    database = Database.open(settings.memory_database_url, settings.limits)
    return Recollection(database, index, embedder, clock=now, copies=copies), owned


def _index(settings: Settings) -> tuple[Index, ClaimedIndex | None]:
    if settings.memory_index == "auto" and settings.qdrant_url is not None:
        return server_index(settings.qdrant_url, settings.qdrant_api_key), None
    embedded: Index = (
        MemoryIndex() if settings.memory_index == "memory" else EdgeIndex(settings.data_dir / INDEX_FOLDER)
    )
    owned = owned_index(embedded, settings.memory_database_url, settings.limits)
    return owned, owned


class MemorySide:
    """A recollection and its upkeep."""

    def __init__(
        self,
        settings: Settings,
        now: Callable[[], datetime],
        copies: ExternalCopies | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._settings = settings
        self._supervisor = supervisor or Supervisor()
        self._now = now
        self.recollection, self._owned = new_recollection(settings, now, copies)
        self._has_schema = self._is_indexing = self._keeps_index = False
        self._swept_s: float | None = None
        self._tried = asyncio.Event()
        self._said = ""
        self._loops: list[Loop] = []

    async def start(self) -> None:
        """Begin the upkeep, and wait for its first round, but not for long."""
        log = self._supervisor.start(
            "memory recall log", lambda loop: self.recollection.keep_recall_log(loop.completed)
        )
        self._loops += [self._supervisor.start("memory upkeep", self._run), log]
        with suppress(TimeoutError):
            async with asyncio.timeout(START_S):
                await self._tried.wait()

    async def close(self) -> None:
        """End the upkeep and let go of everything."""
        await self._supervisor.stop(*self._loops)
        await self.recollection.close()

    @property
    def is_indexing(self) -> bool:
        """Whether this process can ask the index; one that cannot answers from the newest rows of the database."""
        return self._is_indexing

    async def _run(self, loop: Loop) -> None:
        while True:
            try:
                await self._round()
            finally:
                self._tried.set()
            if self._is_indexing:
                self._said = ""
            loop.completed()
            await asyncio.sleep(KEEP_S)

    async def _round(self) -> None:
        if not self._has_schema:
            if gaps := await UPKEEP.run(partial(memory_gaps, self._settings)):
                self._say(f"waiting for the schema ({'; '.join(gaps)}): `threadmark migrate` brings it")
                return
            self._has_schema = True
        await self._own_index()
        await self.recollection.resume_erasures(now=self._now())
        if self._swept_s is None or time.monotonic() - self._swept_s >= SWEEP_EVERY_S:
            self._swept_s = time.monotonic()
            await self._sweep()

    async def _own_index(self) -> None:
        """Have the index brought up to date by this process, if it is this process's to do."""
        if self._owned is not None:
            try:
                await self._owned.take()
            except IndexUnavailable as error:
                self._is_indexing = False
                self._say(str(error))
                return
        if not self._is_indexing:
            # Another machine may have owned the index of a database on a server meanwhile, with files of its own.
            repair = self._owned is not None and not self._settings.memory_database_url.startswith("sqlite")
            await self.recollection.take_up_index(now=self._now(), repair=repair)
            if not self._keeps_index:
                self._keeps_index = True
                self._loops.append(
                    self._supervisor.start("memory index", lambda loop: self.recollection.keep_indexing(loop.completed))
                )
            self._is_indexing = True

    async def _sweep(self) -> None:
        now = self._now()
        before = now - timedelta(days=self._settings.recalls_kept_days)
        if count := await self.recollection.sweep(now=now, recalls_before=before):
            _LOG.info("swept %d assertions that had expired", count)

    def _say(self, sentence: str) -> None:
        # Once, and not with every round for as long as it lasts.
        if sentence != self._said:
            self._said = sentence
            _LOG.warning(sentence)


@asynccontextmanager
async def open_memory(
    settings: Settings,
    now: Callable[[], datetime],
    copies: ExternalCopies | None = None,
    supervisor: Supervisor | None = None,
) -> AsyncIterator[MemorySide]:
    """Memory, for as long as the block lasts; `copies` erase first what it is to erase."""
    side = MemorySide(settings, now, copies, supervisor)
    try:
        await side.start()
        yield side
    finally:
        await side.close()
