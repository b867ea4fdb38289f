"""One subscription to Redis for each process, fanned out in memory.

Redis keeps nothing for a subscriber that is not connected. So after each subscription, the first one and those after an
outage, the listeners are called to look for themselves at what they may have missed.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from arq.connections import ArqRedis

from threadmark.workers.redis.redis_link import AWAY, Outage
from threadmark.workers.supervisor import Loop, Supervisor

__all__ = ["Listener", "RedisSubscription"]

#: A link that says nothing for this long is asked whether it is there; one that then says nothing is taken as cut.
SILENCE_S = 5.0
RETRY_S = 0.5
#: A round takes a silence or an attempt to connect, at most (seconds).
STALE_S = 60.0
_LOG = logging.getLogger("threadmark.redis")


@dataclass(frozen=True, slots=True)
class Listener:
    """What one channel does with a message (`received` may raise MsgspecError), and after messages may be lost."""

    received: Callable[[bytes], None]
    missed: Callable[[], None]


class RedisSubscription:
    """Listens until it is closed, through every outage."""

    def __init__(
        self,
        redis: ArqRedis,
        outage: Outage,
        listeners: Mapping[str, Listener],
        supervisor: Supervisor | None = None,
    ) -> None:
        self._redis = redis
        self._outage = outage
        self._listeners = {name.encode(): listener for name, listener in listeners.items()}
        self._supervisor = supervisor or Supervisor()
        self._loops: list[Loop] = []

    def start(self) -> None:
        """Begin to listen."""
        # A subscription that is alive speaks at least once in a silence; while Redis is away each attempt is a round.
        self._loops.append(self._supervisor.start("notices", self._listen, stale_s=STALE_S))

    async def close(self) -> None:
        """Stop listening."""
        await self._supervisor.stop(*self._loops)

    async def _listen(self, loop: Loop) -> None:
        while True:
            try:
                await self._hear(loop)
            except AWAY as error:
                self._outage.failed(error)
                loop.completed()
                await asyncio.sleep(RETRY_S)

    async def _hear(self, loop: Loop) -> None:
        """Listen on one subscription until it breaks. Raises what the client raises."""
        async with contextlib.aclosing(self._redis.pubsub()) as subscription:
            await subscription.subscribe(*self._listeners)
            asked = False
            while True:
                message = await subscription.get_message(timeout=SILENCE_S)
                loop.completed()
                if message is not None:
                    asked = False
                    self._take(message)
                elif asked:
                    raise ConnectionError("the link has gone silent")
                else:
                    await subscription.ping()
                    asked = True

    def _take(self, message: Mapping[str, Any]) -> None:
        listener = self._listeners.get(message["channel"])
        if listener is None:
            return
        if message["type"] == "subscribe":
            # Also after the client has reconnected by itself, when it subscribes again.
            self._outage.worked()
            listener.missed()
        elif message["type"] == "message":
            try:
                listener.received(message["data"])
            except msgspec.MsgspecError as error:
                # Anybody who may write to Redis can publish anything; what is no message tells nothing.
                _LOG.debug("not a message: %s", error)
