"""The intake of a worker process: an arq worker that outlives every outage of Redis.

arq's worker ends when Redis does, or when something in the queue is no job. Neither may end a process that moves runs:
the sweep goes on meanwhile, and the intake begins again.
"""

import asyncio
import contextlib
import logging
from typing import Any

import arq
from redis.exceptions import ResponseError

from threadmark.workers.fleet.worker import Worker
from threadmark.workers.redis.arq_jobs import FUNCTIONS
from threadmark.workers.redis.redis_link import AWAY, QUEUE, Outage, decode_job, encode_job, open_redis
from threadmark.workers.supervisor import Loop, Supervisor

__all__ = ["ARQ_OPTIONS", "Intake", "end"]

#: How long one cancellation is given (seconds).
LOCK_RETRY_S = 0.1

#: How often arq looks into the queue (seconds): a notification takes half of it on the way, on average.
POLL_S = 0.03
RETRY_S = 0.5
#: How long a stop waits for claims that are on their way.
CLOSE_S = 5.0
_LOG = logging.getLogger("threadmark.redis")

#: What every arq worker of this project is made of, however it is started.
ARQ_OPTIONS: dict[str, Any] = {
    "functions": FUNCTIONS,
    "queue_name": QUEUE,
    "handle_signals": False,
    "max_jobs": 32,
    "keep_result": 0,
    "poll_delay": POLL_S,
    "health_check_interval": 30,
    "log_results": False,
    "job_serializer": encode_job,
    "job_deserializer": decode_job,
}


class Intake:
    """Hands the runs of received jobs to the worker, until it is closed."""

    def __init__(self, redis_url: str, worker: Worker, outage: Outage, supervisor: Supervisor | None = None) -> None:
        self._redis_url = redis_url
        self._worker = worker
        self._outage = outage
        self._closing = asyncio.Event()
        self._supervisor = supervisor or Supervisor()
        self._loops: list[Loop] = []

    def start(self) -> None:
        """Begin to take jobs."""
        self._loops.append(self._supervisor.start("jobs", self._serve))

    async def close(self) -> None:
        """Take no more jobs, and let the claims that are on their way end."""
        self._closing.set()
        await self._supervisor.stop(*self._loops, patience_s=2 * CLOSE_S)

    async def _serve(self, loop: Loop) -> None:
        while not self._closing.is_set():
            try:
                await self._take_jobs()
            except ResponseError as error:
                self._outage.failed(error)
                await self._empty_queue()
            except AWAY as error:
                self._outage.failed(error)
            except Exception:
                _LOG.exception("the queue holds what is no job")
                self._outage.failed("the queue holds what is no job")
                await self._empty_queue()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RETRY_S):
                    await self._closing.wait()
            loop.completed()

    async def _take_jobs(self) -> None:
        """Be an arq worker until it breaks, or until this intake is closed. Raises what broke it."""
        redis = open_redis(self._redis_url)
        context = {"worker": self._worker, "outage": self._outage}
        arq_worker = arq.Worker(redis_pool=redis, on_startup=_started, ctx=context, **ARQ_OPTIONS)
        running = asyncio.create_task(arq_worker.async_run(), name="arq")
        closing = asyncio.create_task(_until(self._closing), name="arq's end")
        try:
            await asyncio.wait({running, closing}, return_when=asyncio.FIRST_COMPLETED)
            arq_worker.allow_pick_jobs = False
            if arq_worker.tasks:
                await asyncio.wait(arq_worker.tasks.values(), timeout=CLOSE_S)
        finally:
            await end(closing, running, *arq_worker.tasks.values())
            await redis.aclose(close_connection_pool=True)
        if not running.cancelled():
            running.result()

    async def _empty_queue(self) -> None:
        """Drop the queue that could not be read: it held hints, and the next worker would stumble over it too."""
        redis = open_redis(self._redis_url)
        try:
            await redis.delete(QUEUE)
        except AWAY as error:
            self._outage.failed(error)
        finally:
            await redis.aclose(close_connection_pool=True)


async def _until(closing: asyncio.Event) -> None:
    await closing.wait()


async def _started(ctx: dict[Any, Any]) -> None:
    ctx["outage"].worked()


async def end(*tasks: "asyncio.Task[None] | None") -> None:
    """Cancel the tasks, and return when they have ended.

    The client of Redis sometimes swallows a cancellation that comes while it opens or closes a connection; a loop
    around it would then go on for ever, and the code that waits for its end too. So the cancellation is repeated until
    it takes effect.
    """
    pending = {each for each in tasks if each is not None}
    while pending:
        for each in pending:
            each.cancel()
        ended, pending = await asyncio.wait(pending, timeout=LOCK_RETRY_S)
        await asyncio.gather(*ended, return_exceptions=True)
