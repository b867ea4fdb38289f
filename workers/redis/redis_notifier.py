"""The notifier of a deployment: a job for one of its workers, and notices to all of them.

A notification is an arq job with the id of a run or a task. arq refuses, silently, an id while a job of that
id exists, so the attempt is part of it: each turn of a run, and each attempt at a task, can have a job. The caller
never waits for Redis: rings leave through a bounded queue, and one that cannot be delivered is dropped.
"""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Collection
from functools import partial

from arq.connections import ArqRedis

from threadmark.workers.fleet.notifier import Notifier
from threadmark.workers.redis.redis_link import AWAY, NOTICES, Outage
from threadmark.workers.supervisor import Loop, Supervisor

__all__ = ["RUN_TASK", "TAKE_TURN", "RedisNotifier"]

#: The names of the jobs: what they do is decided by the worker that hears them.
TAKE_TURN = "take_turn"
RUN_TASK = "run_task"
NOTICE_COUNT_MAX = 10_000
SENDER_COUNT = 4
#: How long a stop waits for the notifications of the released runs.
CLOSE_S = 2.0


class RedisNotifier:
    """Rings through Redis, and wakes the worker of this process (`local`) besides."""

    def __init__(self, redis: ArqRedis, outage: Outage, local: Notifier, supervisor: Supervisor | None = None) -> None:
        self._redis = redis
        self._outage = outage
        self._local = local
        self._notices: asyncio.Queue[Callable[[], Awaitable[object]]] = asyncio.Queue(NOTICE_COUNT_MAX)
        self._supervisor = supervisor or Supervisor()
        self._senders: list[Loop] = []

    def start(self) -> None:
        """Begin to deliver."""
        self._senders = [self._supervisor.start(f"doorbell {number}", self._send) for number in range(SENDER_COUNT)]

    def notify(self, run_id: str, attempt: int) -> None:
        """There is a run to claim; its next turn will be the `attempt`-th."""
        self._local.notify(run_id, attempt)
        self._put(partial(self._redis.enqueue_job, TAKE_TURN, run_id, _job_id=f"{run_id}:{attempt}"))

    def notify_task(self, task_id: str, attempt: int) -> None:
        """There is a task to claim; its next attempt will be the `attempt`-th."""
        self._local.notify_task(task_id, attempt)
        self._put(partial(self._redis.enqueue_job, RUN_TASK, task_id, _job_id=f"task:{task_id}:{attempt}"))

    def notice(self, run_ids: Collection[str]) -> None:
        """Something came from outside for these runs or tasks."""
        if run_ids:
            self._local.notice(run_ids)
            self._put(partial(self._redis.publish, NOTICES, json.dumps(list(run_ids))))

    def announce_deaths(self) -> None:
        """Workers were found dead: every worker looks at once for what they held."""
        self._put(partial(self._redis.publish, NOTICES, "[]"))

    async def close(self) -> None:
        """Deliver what is queued, for a moment, and stop."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self._notices.join()
        await self._supervisor.stop(*self._senders)

    def _put(self, notify: Callable[[], Awaitable[object]]) -> None:
        try:
            self._notices.put_nowait(notify)
        except asyncio.QueueFull:
            self._outage.failed(f"{NOTICE_COUNT_MAX} rings wait to be delivered")

    async def _send(self, loop: Loop) -> None:
        while True:
            notify = await self._notices.get()
            try:
                await notify()
            except AWAY as error:
                self._outage.failed(error)
            else:
                self._outage.worked()
            finally:
                self._notices.task_done()
            loop.completed()
