"""Waiting at the start: for the schema, which one process of a deployment brings, and for a database that is away."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, OperationalError

from threadmark import compaction, state
from threadmark.db import condition_of
from threadmark.db.pooling import is_without_transactions
from threadmark.state import SessionsNotKept, is_outage, open_engine
from threadmark.workers.settings.settings import Settings

__all__ = ["await_schema", "revision_gaps", "state_gaps", "when_reachable"]

T = TypeVar("T")
POLL_S = 0.5
#: How often it is said again while nothing changes (seconds).
SAY_EVERY_S = 30.0
_PARTS = (state.schema_gap, compaction.schema_gap)
_LOG = logging.getLogger("threadmark.schema")


def await_schema(gaps: Callable[[], list[str]]) -> None:
    """Return when the database answers and lacks nothing, however long that takes; the log says why not yet. Blocks."""
    said, said_at = "", float("-inf")
    while reason := _reason(gaps):
        now = time.monotonic()
        if reason != said or now - said_at >= SAY_EVERY_S:
            said, said_at = reason, now
            _LOG.warning(reason)
        time.sleep(POLL_S)


async def when_reachable(attempt: Callable[[], Awaitable[T]]) -> T:
    """What `attempt` brings, made again for as long as the database is away: it may fall between two looks of a start.

    Everything else that `attempt` raises is raised.
    """
    while True:
        try:
            return await attempt()
        except Exception as error:
            if not is_outage(error):
                raise
            _LOG.warning("waiting for the state database, which went away during the start", exc_info=True)
        await asyncio.sleep(POLL_S)


def state_gaps(settings: Settings) -> list[str]:
    """What the tables of state lack; they are read and not changed. Blocks."""
    engine = open_engine(settings.state_database_url, write=False, limits=settings.limits)
    try:
        return revision_gaps(engine)
    finally:
        engine.dispose()


def revision_gaps(engine: Engine) -> list[str]:
    """What the state database lacks of what a worker needs, a phrase for each part that is behind. Blocks."""
    return [lacking for part in _PARTS if (lacking := part(engine)) is not None]


def _reason(gaps: Callable[[], list[str]]) -> str | None:
    try:
        found = gaps()
    except DBAPIError as error:
        if isinstance(error, OperationalError) and is_without_transactions(error):
            raise SessionsNotKept from error
        if condition_of(error) is None:
            raise
        first_line = str(error.orig or error).strip().splitlines()[0]
        return f"waiting for the state database: {first_line}"
    return f"waiting for the schema ({'; '.join(found)}): `threadmark migrate` brings it" if found else None
