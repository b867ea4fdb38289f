"""`threadmark verify`: recompute the hash chain of every journal, or of one."""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator
from functools import partial

from sqlalchemy import Connection

from app.access.store import every_tenant
from app.commands.common import Commands, command, open_database, settings_of
from state import Database, Journal, Thread, ThreadFilter, search_threads, sort_key

__all__ = ["add_to"]

PAGE_COUNT = 200
PROGRESS_S = 1.0
#: Pages that lie beside a thread and not at a number neither skip nor repeat while threads come and go.
_ORDER = "created_at"


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = command(commands, "verify", "Recompute the hash chain of every journal; 1 if one does not hold.")
    parser.add_argument("--thread", metavar="ID", help="this thread alone")
    parser.set_defaults(run=lambda arguments: asyncio.run(_verify(arguments)))


async def _verify(arguments: argparse.Namespace) -> int:
    async with open_database(settings_of(arguments)) as database:
        journal = Journal(database)
        thread_count = damaged_count = 0
        told_s = time.monotonic()
        async for thread in _threads(database, arguments.thread):
            thread_count += 1
            damages = await journal.verify(thread)
            damaged_count += bool(damages)
            for damage in damages:
                print(f"thread {thread.thread_id}, seq {damage.seq}: {damage.why}", flush=True)
            if time.monotonic() - told_s >= PROGRESS_S:
                told_s = time.monotonic()
                print(f"{thread_count} threads so far, {damaged_count} damaged", file=sys.stderr, flush=True)
    if arguments.thread is not None and not thread_count:
        print(f"there is no thread {arguments.thread}", file=sys.stderr)
        return 1
    print(f"{thread_count} threads, {damaged_count} damaged")
    return 1 if damaged_count else 0


async def _threads(database: Database, thread_id: str | None) -> AsyncIterator[Thread]:
    chosen = ThreadFilter(ids=None if thread_id is None else [thread_id])
    for tenant_id in await database.read(every_tenant):
        beside = None
        while page := await database.read(partial(_page, tenant_id=tenant_id, chosen=chosen, beside=beside)):
            for thread in page:
                yield thread
            beside = sort_key(page[-1], _ORDER)


def _page(
    connection: Connection, tenant_id: str, chosen: ThreadFilter, beside: tuple[int | str, int] | None
) -> list[Thread]:
    return search_threads(
        connection, tenant_id, chosen, sort_by=_ORDER, descending=False, limit=PAGE_COUNT, beside=beside
    )
