"""Changing a schema under load: short waits for locks, again and again, and one migrator at a time."""

import itertools
import logging
import time
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from threadmark.db import Condition, condition_of
from threadmark.user_error import UserError

__all__ = ["ATTEMPT_MAX", "LOCK_WAIT_MS", "MigrationBlocked", "change_schema"]

T = TypeVar("T")
#: All later statements queue behind a waiter for a table's lock, so this is also their longest wait.
LOCK_WAIT_MS = 500
#: Attempts, with a pause between them that lets those through who queued behind: two minutes in all.
ATTEMPT_MAX = 120
PAUSE_S = 0.5
_SET_WAIT = f"SET LOCAL lock_timeout = {LOCK_WAIT_MS}"
_TAKE_TURN = "SELECT pg_advisory_xact_lock(:key)"
_MIGRATORS = 6_073_316_518_205_912_641
_LOG = logging.getLogger("threadmark.schema")


class MigrationBlocked(UserError, RuntimeError):
    """A lock was not to be had; the step that needed it was not taken."""

    def __init__(self, error: Exception) -> None:
        super().__init__(
            f"the schema could not be changed in {ATTEMPT_MAX} attempts, because a transaction holds what it needs"
            f" (see pg_stat_activity for one that is old or idle); no step is half done, run it again: {error}"
        )


def change_schema(engine: Engine, change: Callable[[Connection], T]) -> T:
    """Run `change` in one transaction; on PostgreSQL with short waits for locks, tried again. Blocks.

    Raises MigrationBlocked, with nothing changed. On SQLite the one writer at a time is the whole rule.
    """
    if engine.dialect.name == "sqlite":
        with engine.begin() as connection:
            return change(connection)
    for attempt in itertools.count(1):
        try:
            with engine.begin() as connection:
                connection.execute(text(_SET_WAIT))
                connection.execute(text(_TAKE_TURN), {"key": _MIGRATORS})
                return change(connection)
        except DBAPIError as error:
            if condition_of(error) is not Condition.BUSY:
                raise
            if attempt == ATTEMPT_MAX:
                raise MigrationBlocked(error) from error
            _LOG.warning("the schema cannot be changed yet, another session holds a lock (attempt %s)", attempt)
            time.sleep(PAUSE_S)
    raise AssertionError("attempts end by an answer or an error")
