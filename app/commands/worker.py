"""`threadmark worker`: a worker without the API, over the database that the API serves."""

import argparse
import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from functools import partial

import uvloop

from threadmark.app.commands.common import settings_of
from threadmark.app.operations import logs
from threadmark.app.operations.process_exit import unless, until_ended
from threadmark.app.operations.worker_health import serve_health
from threadmark.app.schema import gaps
from threadmark.workers.data_dir import make_data_dir
from threadmark.workers.fleet.interpreter import settle_heap, shorten_turns
from threadmark.workers.schema_wait import await_schema, when_reachable
from threadmark.workers.settings.settings import Settings
from threadmark.workers.wiring import open_resources

__all__ = ["run_worker"]


def run_worker(arguments: argparse.Namespace) -> int:
    """Move runs until a signal comes. Raises UserError for what the user can fix."""
    settings = settings_of(arguments)
    logs.configure(settings.log_level, sys.stderr)
    make_data_dir(settings.data_dir)
    await_schema(partial(gaps, settings))
    return uvloop.run(_work(settings))


async def _work(settings: Settings) -> int:
    """Move runs until a signal comes (0), or until a long-lived task of the process ends unasked (1)."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stopping.set)
    async with AsyncExitStack() as stack:
        opening = when_reachable(
            lambda: stack.enter_async_context(open_resources(settings, with_worker=True, with_readers=False))
        )
        # The database may be away while it starts: a stop that comes then is not waited with until it is back.
        resources = await unless(stopping, opening)
        if resources is None:
            return 0
        if settings.health_port is not None:
            await stack.enter_async_context(serve_health(settings.host, settings.health_port, resources))
        settle_heap()
        shorten_turns()
        print("The worker is ready.", flush=True)
        return await until_ended(stopping, resources.supervisor)
