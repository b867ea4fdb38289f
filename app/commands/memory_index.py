"""`threadmark reindex` and `threadmark verify memory`: the index of memory, rebuilt or compared with the database."""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from threadmark.app.commands.common import settings_of
from threadmark.app.schema import MigrationGap
from threadmark.memory import Agreement, IndexUnavailable, Recollection
from threadmark.user_error import UserError
from threadmark.workers.data_dir import make_data_dir
from threadmark.workers.memory_resources import new_recollection
from threadmark.workers.migration import memory_gaps
from threadmark.workers.settings.settings import Settings
from threadmark.workers.wiring import now_utc

__all__ = ["IndexElsewhere", "run_reindex", "verify_memory"]


#: Differing entries that are named; the others are counted.
SHOWN_COUNT_MAX = 20


class IndexElsewhere(UserError, RuntimeError):
    """A running process has the index; nothing was done."""

    def __init__(self, error: IndexUnavailable) -> None:
        super().__init__(f"{error}; stop that process first, or keep the index on a server (THREADMARK_QDRANT_URL)")


def run_reindex(arguments: argparse.Namespace) -> int:
    """Rebuild the index. Raises MigrationGap, IndexElsewhere."""
    return asyncio.run(_reindex(arguments))


def verify_memory(arguments: argparse.Namespace) -> int:
    """Compare database and index by number and digest; with `--repair`, make them agree. Raises as above."""
    return asyncio.run(_verify_memory(arguments))


async def _verify_memory(arguments: argparse.Namespace) -> int:
    async with _opened(settings_of(arguments)) as memory:
        await memory.take_up_index(now=now_utc())
        await memory.index_pending()
        found = await memory.verify(repair=arguments.repair)
        _tell(found)
        if arguments.repair and not found.agrees:
            found = await memory.verify()
            print("after the repair:")
            _tell(found)
    return 0 if found.agrees else 1


async def _reindex(arguments: argparse.Namespace) -> int:
    async with _opened(settings_of(arguments)) as memory:
        space = await memory.reindex(now=now_utc())
        found = await memory.verify()
    print(f"the index is rebuilt: space {space}, {found.entry_count} entries")
    return 0


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[Recollection]:
    """Memory, its index owned by this command. Raises MigrationGap, IndexElsewhere."""
    make_data_dir(settings.data_dir)
    if found := memory_gaps(settings):
        raise MigrationGap(found)
    memory, owned = new_recollection(settings, now_utc)
    try:
        if owned is not None:
            try:
                await owned.take()
            except IndexUnavailable as error:
                raise IndexElsewhere(error) from error
        yield memory
    finally:
        await memory.close()


def _tell(found: Agreement) -> None:
    differing = len(found.missing) + len(found.stale) + len(found.foreign)
    print(f"space {found.space}: {found.assertion_count} memories, {found.entry_count} entries, {differing} differ")
    for what, numbers in (("missing", found.missing), ("stale", found.stale), ("foreign", found.foreign)):
        if numbers:
            shown = ", ".join(map(str, numbers[:SHOWN_COUNT_MAX]))
            print(f"  {what}: {shown}{' …' if len(numbers) > SHOWN_COUNT_MAX else ''}")
    if found.pending_count:
        print(f"{found.pending_count} changes are not indexed yet", file=sys.stderr)
