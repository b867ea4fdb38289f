"""`threadmark serve`: the API, with a worker in the same process unless there are others."""

import argparse
import asyncio
import json
import shlex
import signal
import socket
import sys
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import uvloop

from threadmark.app.access.first_key import FIRST_KEY_FILE, make_first_key
from threadmark.app.commands.common import settings_of
from threadmark.app.factory import create_app
from threadmark.app.operations import logs
from threadmark.app.operations.process_exit import unless, until_ended
from threadmark.app.resources import Resources
from threadmark.app.schema import gaps, migrate_for_start
from threadmark.app.server import Server, listen, url_of
from threadmark.app.version import VERSION
from threadmark.workers.data_dir import make_data_dir
from threadmark.workers.fleet.interpreter import settle_heap, shorten_turns
from threadmark.workers.schema_wait import await_schema, when_reachable
from threadmark.workers.settings.settings import Settings
from threadmark.workers.wiring import open_resources

__all__ = ["run_serve"]


def run_serve(arguments: argparse.Namespace) -> int:
    """Serve until a signal comes. Raises UserError for what the user can fix."""
    settings = settings_of(arguments)
    # The port first: a second server reports a taken port at once, not after its migrations.
    with listen(settings.host, settings.port) as listening:
        logs.configure(settings.log_level, sys.stderr)
        _prepare(settings)
        return uvloop.run(_serve(settings, listening))


def _prepare(settings: Settings) -> None:
    """An embedded database is migrated by the start; one that others share is migrated when its operator says so."""
    if settings.state_database_url.startswith("sqlite"):
        migrate_for_start(settings)
        return
    make_data_dir(settings.data_dir)
    await_schema(partial(gaps, settings))


async def _serve(settings: Settings, listening: socket.socket) -> int:
    """Serve until a signal comes (0), or until a long-lived task of the process ends unasked (1)."""
    stopping = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stopping.set)
    async with AsyncExitStack() as stack:
        opening = when_reachable(
            lambda: stack.enter_async_context(open_resources(settings, with_worker=settings.serves_with_worker))
        )
        # The database may be away while it starts: a stop that comes then is not waited with until it is back.
        wired = await unless(stopping, opening)
        if wired is None:
            return 0
        resources = Resources(wired=wired, stopping=stopping)
        first_key = await when_reachable(lambda: make_first_key(wired.database, settings.data_dir, wired.now()))
        url, key_file = url_of(listening), settings.data_dir / FIRST_KEY_FILE
        agent = next((agent.name for agent in wired.registry), None) if settings.serves_with_worker else None
        announce = partial(_announce, url, key_file, _first_words(url, key_file, agent) if first_key else None)
        server = Server(create_app(resources), stopping=resources.stopping, on_ready=announce)
        settle_heap()
        shorten_turns()
        if stopping.is_set():
            return 0
        serving = asyncio.create_task(server.serve(sockets=[listening]), name="server")
        # A server that ends by itself is handled like one that was stopped.
        serving.add_done_callback(lambda _ended: resources.stopping.set())
        code = await until_ended(resources.stopping, wired.supervisor)
        if code:
            server.stop()
        await serving
        return code


def _first_words(url: str, key_file: Path, agent: str | None) -> str:
    """A command to paste: a conversation with the agent, or a question to the server where none can be had."""
    call = f'curl -s -H "X-Api-Key: $(cat {shlex.quote(str(key_file))})" {url}'
    if agent is None:
        return f"{call}/info"
    body = {"assistant_id": agent, "input": {"messages": [{"role": "user", "content": "Hello"}]}}
    return f"{call}/runs/wait -H 'Content-Type: application/json' -d {shlex.quote(json.dumps(body))}"


def _announce(url: str, key_file: Path, first_words: str | None) -> None:
    lines = [f"Threadmark {VERSION} serves {url}"]
    if first_words is not None:
        lines.append(f"A key that opens everything is in {key_file} (readable by its owner alone). It works like this:")
        lines.append(f"  {first_words}")
    elif not key_file.exists():
        lines.append("Keys exist, and none is in the data directory: `threadmark keys create` makes another.")
    print("\n".join(lines), flush=True)
