"""Waiting for the schema: in a deployment of many processes one migrates, and the others begin when it is done."""

import logging
import time
from collections.abc import Callable

from sqlalchemy.exc import OperationalError

from state import current_revision, head_revision, open_engine
from workers.settings import Settings

__all__ = ["await_schema", "state_gaps"]

POLL_S = 0.5
#: How often it is said again while nothing changes (seconds).
SAY_EVERY_S = 30.0
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


def state_gaps(settings: Settings) -> list[str]:
    """What the tables of state lack; they are read and not changed. Blocks."""
    engine = open_engine(settings.state_database_url, write=False)
    try:
        at, needed = current_revision(engine), head_revision()
    finally:
        engine.dispose()
    return [] if at == needed else [f"state is at revision {at}, needed is {needed}"]


def _reason(gaps: Callable[[], list[str]]) -> str | None:
    try:
        found = gaps()
    except OperationalError as error:
        first_line = str(error.orig or error).strip().splitlines()[0]
        return f"waiting for the state database: {first_line}"
    return f"waiting for the schema ({'; '.join(found)}): `threadmark migrate` brings it" if found else None
