"""`threadmark worker`: a worker without the API, over the database that the API serves."""

import argparse
import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from functools import partial

import uvloop

from app import logs
from app.commands.common import Commands, command, settings_of
from app.migrating import gaps
from workers.heap import settle_heap
from workers.schema import await_schema, when_reachable
from workers.settings import Settings
from workers.wiring import open_resources

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Declare the command."""
    command(commands, "worker", "Move runs, without serving the API.").set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments)
    logs.configure(settings.log_level, sys.stderr)
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    await_schema(partial(gaps, settings))
    uvloop.run(_work(settings))
    return 0


async def _work(settings: Settings) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stopping.set)
    async with AsyncExitStack() as stack:
        await when_reachable(
            lambda: stack.enter_async_context(open_resources(settings, with_worker=True, with_readers=False))
        )
        settle_heap()
        print("The worker is ready.", flush=True)
        await stopping.wait()
