"""Migrations of what the API keeps in the state database; its version table is `app_alembic_version`."""

from pathlib import Path

from threadmark.state import Migrations

__all__ = ["VERSION_TABLE", "current_revision", "head_revision", "migrate", "schema_gap"]

VERSION_TABLE = "app_alembic_version"
_OWN = Migrations("app", Path(__file__).parent, VERSION_TABLE)

migrate = _OWN.migrate
current_revision = _OWN.current_revision
head_revision = _OWN.head_revision
schema_gap = _OWN.gap
