"""Migrating: the state database, with what state and the API keep in it, and the memory database."""

import logging

from sqlalchemy.exc import SQLAlchemyError

import threadmark.app.migrations
from threadmark import compaction, state
from threadmark.db import Purpose
from threadmark.user_error import UserError
from threadmark.workers.data_dir import make_data_dir
from threadmark.workers.migration import memory_gaps, migrate_memory, migrate_state
from threadmark.workers.settings.settings import Settings

__all__ = ["MigrationGap", "all_gaps", "gaps", "migrate_all", "migrate_for_start"]

_LOG = logging.getLogger("threadmark.schema")

_PARTS = (state.schema_gap, compaction.schema_gap, threadmark.app.migrations.schema_gap)


class MigrationGap(UserError, RuntimeError):
    """The database is not at the revisions this code needs; nothing was started."""

    def __init__(self, found: list[str]) -> None:
        super().__init__(f"a database is behind ({'; '.join(found)}): run `threadmark migrate`")


def migrate_all(settings: Settings) -> None:
    """Make the data directory and bring both databases to the head revisions. Blocks."""
    _migrate_state(settings)
    migrate_memory(settings)


def migrate_for_start(settings: Settings) -> None:
    """Like `migrate_all`, but a memory that cannot be migrated is logged and stops nothing: runs go on without it."""
    _migrate_state(settings)
    try:
        migrate_memory(settings)
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        _LOG.warning("memory is not migrated, and not there until it is: %s", reason)


def _migrate_state(settings: Settings) -> None:
    make_data_dir(settings.data_dir)
    migrate_state(settings)
    engine = state.open_engine(
        settings.state_database_url, write=True, limits=settings.limits, purpose=Purpose.MIGRATION
    )
    try:
        threadmark.app.migrations.migrate(engine)
    finally:
        engine.dispose()


def gaps(settings: Settings) -> list[str]:
    """What the state database lacks, a phrase for each part that is behind; it is read and not changed. Blocks."""
    engine = state.open_engine(settings.state_database_url, write=False, limits=settings.limits)
    try:
        return [lacking for part in _PARTS if (lacking := part(engine)) is not None]
    finally:
        engine.dispose()


def all_gaps(settings: Settings) -> list[str]:
    """What either database lacks. Blocks."""
    return [*gaps(settings), *memory_gaps(settings)]
