"""For `arq threadmark.workers.main.WorkerSettings`: this project's worker inside arq's own program.

`threadmark worker` is the same and outlives an outage of Redis of any length; arq's program waits for Redis a minute
and ends then, and its supervisor has to start it again. Runs lose nothing either way.
"""

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from arq.connections import RedisSettings
from redis.asyncio.retry import Retry
from redis.backoff import ConstantBackoff
from redis.exceptions import ConnectionError as RedisAway
from redis.exceptions import TimeoutError as RedisSlow

from threadmark.workers.data_dir import make_data_dir
from threadmark.workers.fleet.interpreter import settle_heap, shorten_turns
from threadmark.workers.pools import UPKEEP
from threadmark.workers.redis.redis_intake import ARQ_OPTIONS
from threadmark.workers.schema_wait import await_schema, state_gaps, when_reachable
from threadmark.workers.settings.settings import Settings, SettingsRefused
from threadmark.workers.wiring import open_resources

__all__ = ["WorkerSettings"]

RETRY_S = 1.0
RETRY_COUNT_MAX = 60


def _redis_settings() -> RedisSettings:
    url = Settings.from_environment(os.environ).redis_url
    if url is None:
        raise SettingsRefused("THREADMARK_REDIS_URL is not set: arq needs it, and `threadmark worker` works without")
    return replace(
        RedisSettings.from_dsn(url),
        conn_retries=RETRY_COUNT_MAX,
        conn_retry_delay=round(RETRY_S),
        retry=Retry(ConstantBackoff(RETRY_S), RETRY_COUNT_MAX),
        # OSError: what a refused connection is before the client makes an error of its own of it.
        retry_on_error=[RedisAway, RedisSlow, OSError],
    )


async def _start(ctx: dict[Any, Any]) -> None:
    settings = Settings.from_environment(os.environ)
    make_data_dir(settings.data_dir)
    await UPKEEP.run(partial(await_schema, partial(state_gaps, settings)))
    stack = AsyncExitStack()
    resources = await when_reachable(
        lambda: stack.enter_async_context(
            open_resources(settings, with_worker=True, with_readers=False, with_intake=False)
        )
    )
    ctx["worker"], ctx["open"] = resources.worker, stack
    settle_heap()
    shorten_turns()
    _stop_on_signals(stack)


async def _end(ctx: dict[Any, Any]) -> None:
    await ctx["open"].aclose()


def _stop_on_signals(stack: AsyncExitStack) -> None:
    """Close in order and then end arq: its own handlers would first wait for Redis, which may be gone."""
    loop, arq_main = asyncio.get_running_loop(), asyncio.current_task()
    stops: set[asyncio.Task[None]] = set()

    async def stop() -> None:
        await stack.aclose()
        if arq_main is not None:
            arq_main.cancel()

    def on_signal() -> None:
        if not stops:
            stops.add(loop.create_task(stop()))

    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, on_signal)


class WorkerSettings:
    """What arq's program looks for: one attribute per option of its worker."""

    redis_settings = _redis_settings()
    on_startup = _start
    on_shutdown = _end
    functions = ARQ_OPTIONS["functions"]
    queue_name = ARQ_OPTIONS["queue_name"]
    handle_signals = ARQ_OPTIONS["handle_signals"]
    max_jobs = ARQ_OPTIONS["max_jobs"]
    keep_result = ARQ_OPTIONS["keep_result"]
    poll_delay = ARQ_OPTIONS["poll_delay"]
    health_check_interval = ARQ_OPTIONS["health_check_interval"]
    log_results = ARQ_OPTIONS["log_results"]
    job_serializer = ARQ_OPTIONS["job_serializer"]
    job_deserializer = ARQ_OPTIONS["job_deserializer"]
