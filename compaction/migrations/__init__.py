"""Migrations of what compaction keeps in the state database; its version table is `compaction_alembic_version`."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine

from state import change_schema

__all__ = ["VERSION_TABLE", "current_revision", "head_revision", "migrate"]

VERSION_TABLE = "compaction_alembic_version"


def migrate(engine: Engine, revision: str = "head") -> None:
    """Bring the database behind `engine` to `revision`, up or down, in one transaction. Raises MigrationBlocked."""

    def change(connection: Connection) -> None:
        config = _config()
        config.attributes["connection"] = connection
        at = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()
        if revision == "head" or at is None or _is_upgrade(config, at, revision):
            command.upgrade(config, revision)
        else:
            command.downgrade(config, revision)

    change_schema(engine, change)


def current_revision(engine: Engine) -> str | None:
    """The revision that the database is at; None before the first migration."""
    with engine.connect() as connection:
        return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()


def head_revision() -> str:
    """The revision that this code needs."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    if head is None:
        raise RuntimeError("the compaction package has no migrations")
    return head


def _is_upgrade(config: Config, at: str, revision: str) -> bool:
    if revision == "base":
        return False
    script = ScriptDirectory.from_config(config)
    return at in {each.revision for each in script.walk_revisions("base", revision)}


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    return config
