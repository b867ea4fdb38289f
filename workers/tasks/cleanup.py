"""Tidying up: what nobody needs any more is removed, a little at a time, by whichever worker comes by."""

from functools import partial

from sqlalchemy import Connection

from threadmark.compaction import forget_threads
from threadmark.state import prune, purge_expired
from threadmark.state.tasks.tasks import prune_tasks
from threadmark.workers.fleet.services import Services

__all__ = ["tidy"]

COUNT_MAX = 100  #: threads or tasks at once
LEDGER_COUNT_MAX = 10  #: of thousands of rows each


async def tidy(services: Services) -> None:
    """Remove threads of stateless runs whose time has come, receipts and tasks kept long enough, old ledgers' words."""
    now_us = services.now_us()
    await services.database.write(partial(_purge, now_us=now_us, compacts=services.compaction is not None))
    await services.database.write(lambda connection: prune(connection, now_us))
    if services.compaction is not None and services.ledger_words_kept is not None:
        await services.compaction.hash_words(services.ledger_words_kept, LEDGER_COUNT_MAX)
    await services.database.write(lambda connection: prune_tasks(connection, now_us, COUNT_MAX))


def _purge(connection: Connection, now_us: int, *, compacts: bool) -> None:
    gone = purge_expired(connection, now_us, COUNT_MAX)
    if gone and compacts:
        forget_threads(connection, gone)
