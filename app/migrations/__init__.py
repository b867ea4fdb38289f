"""Migrations of what the API keeps in the state database; its version table is `app_alembic_version`."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine

from state import change_schema

__all__ = ["VERSION_TABLE", "current_revision", "head_revision", "migrate"]

VERSION_TABLE = "app_alembic_version"


def migrate(engine: Engine, revision: str = "head") -> None:
    """Bring the database behind `engine` up to `revision`, in one transaction. Raises MigrationBlocked."""

    def upgrade(connection: Connection) -> None:
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)

    change_schema(engine, upgrade)


def current_revision(engine: Engine) -> str | None:
    """The revision that the database is at; None before the first migration."""
    with engine.connect() as connection:
        return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()


def head_revision() -> str:
    """The revision that this code needs."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    if head is None:
        raise RuntimeError("the app package has no migrations")
    return head


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    return config
