"""Exports on a thread and a connection of their own, so that no question waits for one."""

import asyncio

from sqlalchemy.exc import DBAPIError

from threadmark.memory.errors import Unavailable
from threadmark.memory.model.scope import Scope
from threadmark.memory.pools import EXPORTS
from threadmark.memory.store.archive import exported
from threadmark.memory.store.database import open_engine
from threadmark.memory.store.spooled_lines import SpooledLines

__all__ = ["export_to"]


async def export_to(url: str, spool: SpooledLines, scope: Scope) -> None:
    """Write the lines of everything that the scope covers, of one snapshot. Raises Unavailable."""
    await asyncio.get_running_loop().run_in_executor(EXPORTS, _export, url, spool, scope)


def _export(url: str, spool: SpooledLines, scope: Scope) -> None:
    engine = open_engine(url, write=False)
    try:
        with engine.connect() as connection, connection.begin() as transaction:
            spool.write_lines(exported(connection, scope))
            transaction.rollback()
    except DBAPIError as error:
        raise Unavailable("the memory database cannot be read") from error
    finally:
        engine.dispose()
