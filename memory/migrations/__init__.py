"""Migrations of the memory database, with Alembic; its version table is `memory_alembic_version`."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from memory.database import open_engine

__all__ = ["VERSION_TABLE", "current_revision", "head_revision", "migrate"]

VERSION_TABLE = "memory_alembic_version"


def migrate(url: str, revision: str = "head") -> None:
    """Bring the database at `url` to `revision` (`base` for none), up or down, in one transaction."""
    config = _config()
    engine = open_engine(url, write=True)
    try:
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            at = _revision(connection)
            if revision == "head" or (revision != "base" and at not in _at_or_above(config, revision)):
                command.upgrade(config, revision)
            else:
                command.downgrade(config, revision)
    finally:
        engine.dispose()


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


def _at_or_above(config: Config, revision: str) -> set[str]:
    return {each.revision for each in ScriptDirectory.from_config(config).walk_revisions(revision, "head")}


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    return config
