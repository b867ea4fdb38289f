"""Publishing what turns flash: many changes in one exchange with Redis, and never a turn that waits for it."""

import asyncio
from typing import Any

from arq.connections import ArqRedis
from redis.exceptions import ResponseError

from threadmark.workers.feeds.feed import FLASH_COUNT_MAX, Flash, RunKey
from threadmark.workers.redis.redis_events import RunNotice, encode_flash, encode_notices
from threadmark.workers.redis.redis_link import AWAY, RUN_NOTICES, Outage, flashes_key
from threadmark.workers.supervisor import Loop, Supervisor

__all__ = ["Change", "Publisher"]

#: A flash that takes more is left to the journal (bytes of JSON).
FLASH_BYTES_MAX = 64 * 1024
#: A stream that nothing was added to for so long is gone (seconds).
STREAM_TTL_S = 300
#: What waits to be published at most; when it is more, all of it is dropped and left to the journal.
WAITING_COUNT_MAX = 20_000
BATCH_COUNT_MAX = 1_000
#: What Redis replies for an entry that is there, or that a later one has overtaken.
_PASSED = "equal or smaller"

#: A flash; the seq that the run's journal is durable up to; None: the turn is over.
Change = Flash | int | None


class Publisher:
    """Takes changes of runs and publishes them, in order, as long as Redis is there."""

    def __init__(self, redis: ArqRedis, outage: Outage, supervisor: Supervisor) -> None:
        self._redis = redis
        self._outage = outage
        self._waiting: list[tuple[RunKey, Change]] = []
        self._something = asyncio.Event()
        self._streams: set[RunKey] = set()
        self._supervisor = supervisor
        self._loops: list[Loop] = []

    def start(self) -> None:
        """Begin to publish."""
        self._loops.append(self._supervisor.start("feed publisher", self._publish))

    async def close(self) -> None:
        """Stop; what was not published is in the journal."""
        await self._supervisor.stop(*self._loops)

    def put(self, key: RunKey, change: Change) -> None:
        """Publish a change of a run soon."""
        if len(self._waiting) >= WAITING_COUNT_MAX:
            self._outage.failed(f"{WAITING_COUNT_MAX} live events waited to be published")
            self._waiting.clear()
        self._waiting.append((key, change))
        self._something.set()

    async def _publish(self, loop: Loop) -> None:
        while True:
            await self._something.wait()
            batch, self._waiting = self._waiting[:BATCH_COUNT_MAX], self._waiting[BATCH_COUNT_MAX:]
            if not self._waiting:
                self._something.clear()
            try:
                await self._send(batch)
            except AWAY as error:
                self._outage.failed(error)
            else:
                self._outage.worked()
            loop.completed()

    async def _send(self, batch: list[tuple[RunKey, Change]]) -> None:
        """One exchange for the whole batch. Raises the first error that means more than a repetition."""
        notices: dict[RunKey, RunNotice] = {}
        async with self._redis.pipeline(transaction=False) as pipe:
            for key, change in batch:
                notice = notices.setdefault(key, RunNotice(*key))
                self._add(pipe, key, change, notice)
            for key, notice in notices.items():
                if notice.flashed and key in self._streams:
                    pipe.expire(flashes_key(*key), STREAM_TTL_S)
            pipe.publish(RUN_NOTICES, encode_notices(list(notices.values())))
            outcomes = await pipe.execute(raise_on_error=False)
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not _has_passed(outcome):
                raise outcome

    def _add(self, pipe: Any, key: RunKey, change: Change, notice: RunNotice) -> None:
        match change:
            case Flash():
                body = encode_flash(change)
                if len(body) <= FLASH_BYTES_MAX:
                    notice.flashed = True
                    self._streams.add(key)
                    place = f"{change.after_seq}-{change.ordinal}"
                    pipe.xadd(flashes_key(*key), {"flash": body}, id=place, maxlen=FLASH_COUNT_MAX)
            case int():
                notice.seq = change
                if key in self._streams:
                    pipe.xtrim(flashes_key(*key), minid=f"{change}-0", approximate=False)
            case None:
                notice.ended = True
                if key in self._streams:
                    self._streams.remove(key)
                    pipe.delete(flashes_key(*key))


def _has_passed(error: Exception) -> bool:
    return isinstance(error, ResponseError) and _PASSED in str(error)
