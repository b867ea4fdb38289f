"""The feed of a deployment: turns in some processes, readers in others.

A run's flashes are a bounded stream of its own, which expires; the id of each entry of it is the flash's place, so
Redis itself refuses what is repeated or overtaken. A wake-up tells every process that something stirs in a run, and
those with readers of it fetch what they do not have. All of it may be lost: readers look into the journal anyway.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence

from arq.connections import ArqRedis

from threadmark.workers.feeds.feed import Flash, RunKey
from threadmark.workers.feeds.local_feed import LocalFeed, LocalWatch
from threadmark.workers.redis.redis_events import decode_flash, decode_notices, place_of
from threadmark.workers.redis.redis_link import AWAY, Outage, flashes_key
from threadmark.workers.redis.redis_publisher import Publisher
from threadmark.workers.supervisor import Loop, Supervisor

__all__ = ["RedisFeed"]

FETCH_COUNT = 1_000


class RedisFeed(LocalFeed):
    """What this process's turns flash goes to Redis; what its readers wait for comes from there."""

    def __init__(self, redis: ArqRedis, outage: Outage, supervisor: Supervisor | None = None) -> None:
        super().__init__()
        self._redis = redis
        self._outage = outage
        self._supervisor = supervisor or Supervisor()
        self._publisher = Publisher(redis, outage, self._supervisor)
        self._fetched: dict[RunKey, bytes] = {}
        self._stale: set[RunKey] = set()
        self._to_fetch = asyncio.Event()
        self._loops: list[Loop] = []

    def start(self) -> None:
        """Begin to publish and to fetch."""
        self._publisher.start()
        self._loops.append(self._supervisor.start("feed reader", self._fetch))

    async def close(self) -> None:
        """Stop both."""
        await self._publisher.close()
        await self._supervisor.stop(*self._loops)

    def flash(self, tenant_id: str, run_id: str, flash: Flash) -> None:
        """Show a live event to the readers of a run."""
        key = (tenant_id, run_id)
        if self.is_watched(key):
            super().flash(tenant_id, run_id, flash)
        self._publisher.put(key, flash)

    def advanced(self, tenant_id: str, run_id: str, seq: int) -> None:
        """The run's journal is durable up to `seq`: earlier gaps have ended."""
        super().advanced(tenant_id, run_id, seq)
        self._publisher.put((tenant_id, run_id), seq)

    def ended(self, tenant_id: str, run_id: str) -> None:
        """The turn is over."""
        super().ended(tenant_id, run_id)
        self._publisher.put((tenant_id, run_id), None)

    def add(self, key: RunKey, watch: LocalWatch) -> None:
        """Begin to wake a watch, and fetch what has been flashed before it came."""
        super().add(key, watch)
        self._look([key])

    def remove(self, key: RunKey, watch: LocalWatch) -> None:
        """Stop waking a watch; with the last one of a run go its flashes."""
        super().remove(key, watch)
        if not self.is_watched(key):
            self.forget(key)
            self._fetched.pop(key, None)

    def received(self, message: bytes) -> None:
        """A wake-up came, from any process of the deployment. Raises msgspec.MsgspecError if it is none."""
        for notice in decode_notices(message):
            key = (notice.tenant_id, notice.run_id)
            if not self.is_watched(key):
                continue
            if notice.seq:
                super().advanced(*key, notice.seq)
            if notice.flashed:
                self._look([key])
            if notice.ended:
                super().ended(*key)

    def missed(self) -> None:
        """Wake-ups may have been missed: every reader looks for itself."""
        self._look(self.watched())
        for key in self.watched():
            self.wake(key)

    def _look(self, keys: Collection[RunKey]) -> None:
        self._stale.update(keys)
        self._to_fetch.set()

    async def _fetch(self, loop: Loop) -> None:
        while True:
            await self._to_fetch.wait()
            self._to_fetch.clear()
            stale, self._stale = [key for key in self._stale if self.is_watched(key)], set()
            try:
                if stale:
                    await self._fetch_streams(stale)
            except AWAY as error:
                self._outage.failed(error)
            else:
                self._outage.worked()
            loop.completed()

    async def _fetch_streams(self, keys: list[RunKey]) -> None:
        """What the streams have that was not fetched yet. Raises the last error, after all that could be read."""
        async with self._redis.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.xrange(flashes_key(*key), min=b"(" + self._fetched.get(key, b"0-0"), count=FETCH_COUNT)
            streams = await pipe.execute(raise_on_error=False)
        failure: Exception | None = None
        for key, entries in zip(keys, streams, strict=True):
            if isinstance(entries, Exception):
                failure = entries
            elif self.is_watched(key):
                self._take(key, entries)
        if failure is not None:
            raise failure

    def _take(self, key: RunKey, entries: Sequence[tuple[bytes, Mapping[bytes, bytes]]]) -> None:
        for entry_id, fields in entries:
            self._fetched[key] = entry_id
            flash = decode_flash(place_of(entry_id), fields.get(b"flash", b""))
            if flash is not None:
                super().flash(*key, flash)
        if len(entries) == FETCH_COUNT:
            self._look([key])
