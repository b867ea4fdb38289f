"""What a process has of Redis: one client, and on it a notifier, a feed, a subscription, and for a worker an intake.

Nothing here is waited for at the start, and nothing of it can end the process.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec
from arq.connections import ArqRedis

from threadmark.workers.fleet.notifier import Notifier
from threadmark.workers.fleet.worker import Worker
from threadmark.workers.redis.redis_feed import RedisFeed
from threadmark.workers.redis.redis_intake import Intake
from threadmark.workers.redis.redis_link import NOTICES, RUN_NOTICES, Outage, open_redis
from threadmark.workers.redis.redis_notifier import RedisNotifier
from threadmark.workers.redis.redis_subscription import Listener, RedisSubscription
from threadmark.workers.supervisor import Supervisor

__all__ = ["RedisSide", "open_side"]

_RUN_IDS = msgspec.json.Decoder(list[str])


class RedisSide:
    """Built by `open_side`; what it starts ends with the block."""

    def __init__(self, url: str, redis: ArqRedis, stack: AsyncExitStack, supervisor: Supervisor) -> None:
        self._url = url
        self._redis = redis
        self._stack = stack
        self._supervisor = supervisor
        self._notifier, self._feed, self._subscription, self._intake = (
            Outage(part) for part in ("doorbell", "feed", "notices", "jobs")
        )
        self.feed = RedisFeed(redis, self._feed, supervisor)

    @property
    def outages(self) -> tuple[Outage, ...]:
        """How often each part failed, and whether it does now."""
        return self._notifier, self._feed, self._subscription, self._intake

    def connect(self, worker: Worker | None, local: Notifier, *, with_readers: bool) -> Notifier:
        """Begin to publish and to listen; returns the notifier to use from now on."""
        notifier = RedisNotifier(self._redis, self._notifier, local, self._supervisor)
        listeners: dict[str, Listener] = {}
        if with_readers:
            listeners[RUN_NOTICES] = Listener(received=self.feed.received, missed=self.feed.missed)
        if worker is not None:
            worker.announce_deaths_by(notifier.announce_deaths)
            listeners[NOTICES] = Listener(
                received=lambda message: worker.notice(tuple(_RUN_IDS.decode(message))), missed=worker.notify
            )
        parts: list[RedisFeed | RedisNotifier | RedisSubscription] = [self.feed, notifier]
        if listeners:
            parts.append(RedisSubscription(self._redis, self._subscription, listeners, self._supervisor))
        for each in parts:
            each.start()
            self._stack.push_async_callback(each.close)
        return notifier

    @asynccontextmanager
    async def intake(self, worker: Worker) -> AsyncIterator[None]:
        """Have the worker take jobs."""
        intake = Intake(self._url, worker, self._intake, self._supervisor)
        intake.start()
        try:
            yield
        finally:
            await intake.close()


@asynccontextmanager
async def open_side(url: str, supervisor: Supervisor | None = None) -> AsyncIterator[RedisSide]:
    """A client of the Redis at `url`, and what is built on it."""
    async with AsyncExitStack() as stack:
        redis = open_redis(url)
        stack.push_async_callback(redis.aclose, close_connection_pool=True)
        yield RedisSide(url, redis, stack, supervisor or Supervisor())
