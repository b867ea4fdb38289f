"""Housekeeping of a worker: removes now and then what is not needed any more.

It is a loop of its own: in the sweep it would stand between a death and the claim of what the dead held.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial

from sqlalchemy import Connection

from threadmark.compaction import CompactionService, forget_thread, remove_thread_rows
from threadmark.state import (
    Database,
    Deletion,
    clear_copies,
    expired_copies,
    finish_deletions,
    prune,
    purge_expired,
    remove_deleted,
    unfinished_deletions,
)
from threadmark.state.append.thread_deletions import RemoveOthers
from threadmark.state.tasks.tasks import prune_tasks
from threadmark.workers.supervisor import Loop, Supervisor, stale_after_s

__all__ = ["Housekeeping", "tidy"]

COUNT_MAX = 100  #: threads or tasks at once
#: Times that one round of housekeeping looks for expired threads.
PURGE_COUNT = 50
LEDGER_COUNT_MAX = 10  #: of thousands of rows each

#: A worker that starts has other things to do first: taking over what the one before it left (seconds).
FIRST_S = 5.0
EVERY_S = 30.0


class Housekeeping:
    """Cleans up periodically in the event loop of a worker, from `start` to `stop`."""

    def __init__(self, tidy: Callable[[], Awaitable[None]] | None, supervisor: Supervisor) -> None:
        self._tidy = tidy
        self._supervisor = supervisor
        self._loops: list[Loop] = []

    def start(self) -> None:
        """Begin, after a while; there is nothing to begin without `tidy`."""
        if self._tidy is None:
            return
        stale_s = stale_after_s(EVERY_S)
        self._loops.append(
            self._supervisor.start(
                "housekeeping", partial(self._keep, self._tidy), stale_s=stale_s, delay_s_max=EVERY_S
            )
        )

    async def stop(self) -> None:
        """Do no more of it."""
        await self._supervisor.stop(*self._loops)

    async def _keep(self, tidy: Callable[[], Awaitable[None]], loop: Loop) -> None:
        await asyncio.sleep(FIRST_S)
        while True:
            await tidy()
            loop.completed()
            await asyncio.sleep(EVERY_S)


async def tidy(
    now_us: int, *, database: Database, compaction: CompactionService | None, ledger_words_kept: timedelta | None = None
) -> None:
    """Remove threads of stateless runs whose time has come, what is left of deleted threads, receipts and tasks kept
    long enough, words of ledgers older than `ledger_words_kept` (None: they are kept for ever), and rows of abandoned
    ledgers and copies.
    """
    remove_others = None if compaction is None else remove_thread_rows
    for _ in range(PURGE_COUNT):
        count, left = await database.write(partial(_purge, now_us=now_us, remove_others=remove_others))
        await finish_deletions(database, left, remove_others)
        if count < COUNT_MAX:
            break
    cut_short = await database.read(partial(unfinished_deletions, count_max=COUNT_MAX))
    await finish_deletions(database, cut_short, remove_others)
    await clear_copies(database, partial(expired_copies, now_us=now_us))
    await database.write(lambda connection: prune(connection, now_us))
    if compaction is not None:
        await compaction.compactions.clear_left()
    if compaction is not None and ledger_words_kept is not None:
        await compaction.hash_words(ledger_words_kept, LEDGER_COUNT_MAX)
    await database.write(lambda connection: prune_tasks(connection, now_us, COUNT_MAX))


def _purge(connection: Connection, now_us: int, remove_others: RemoveOthers | None) -> tuple[int, Sequence[Deletion]]:
    """How many expired threads were deleted, and those of which rows are left."""
    deletions = purge_expired(connection, now_us, COUNT_MAX)
    if remove_others is not None:
        for deletion in deletions:
            forget_thread(connection, deletion.thread)
    return len(deletions), remove_deleted(connection, deletions, remove_others)
