"""Migrations of the memory database, with Alembic; its version table is `memory_alembic_version`."""

from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine

from threadmark.db import DEFAULT_LIMITS, Limits, Purpose
from threadmark.memory.store.database import open_engine

__all__ = ["VERSION_TABLE", "current_revision", "head_revision", "migrate", "schema_gap"]

Change = Callable[[Connection], None]

VERSION_TABLE = "memory_alembic_version"


def _at_once(engine: Engine, change: Change) -> None:
    with engine.begin() as connection:
        change(connection)


def migrate(
    url: str,
    revision: str = "head",
    within: Callable[[Engine, Change], None] = _at_once,
    limits: Limits = DEFAULT_LIMITS,
) -> None:
    """Bring the database at `url` to `revision` (`base` for none), up or down, in one transaction.

    One that a newer version has migrated is left as it is by `head`. `within` runs the change in the transaction:
    whoever changes a schema under load knows how to wait for its locks.
    """

    def change(connection: Connection) -> None:
        config, at = _config(), _revision(connection)
        config.attributes["connection"] = connection
        if revision == "head":
            if at is None or not _is_newer(at):
                command.upgrade(config, revision)
        elif revision != "base" and at not in _at_or_above(config, revision):
            command.upgrade(config, revision)
        else:
            command.downgrade(config, revision)

    engine = open_engine(url, write=True, limits=limits, purpose=Purpose.MIGRATION)
    try:
        within(engine, change)
    finally:
        engine.dispose()


def schema_gap(url: str) -> str | None:
    """What the database lacks, in a phrase; None for one that is at this code's revision, or beyond it."""
    at, needed = current_revision(url), head_revision()
    if at == needed or (at is not None and _is_newer(at)):
        return None
    return f"memory is at revision {at}, needed is {needed}"


def current_revision(url: str) -> str | None:
    """The revision that the database is at; None before the first migration."""
    engine = open_engine(url, write=False)
    try:
        with engine.connect() as connection:
            return _revision(connection)
    finally:
        engine.dispose()


def head_revision() -> str:
    """The revision that this code needs."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    if head is None:
        raise RuntimeError("the memory package has no migrations")
    return head


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()


def _is_newer(revision: str) -> bool:
    """Whether this code lacks the migration: a newer version has brought it."""
    return revision not in {each.revision for each in ScriptDirectory.from_config(_config()).walk_revisions()}


def _at_or_above(config: Config, revision: str) -> set[str]:
    return {each.revision for each in ScriptDirectory.from_config(config).walk_revisions(revision, "head")}


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    return config
