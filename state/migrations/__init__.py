"""Migrations of the state database; its version table is `state_alembic_version`."""

from pathlib import Path

from threadmark.db.migration_runner import Migrations

__all__ = ["VERSION_TABLE", "current_revision", "head_revision", "migrate", "schema_gap"]

VERSION_TABLE = "state_alembic_version"
_OWN = Migrations("state", Path(__file__).parent, VERSION_TABLE)

migrate = _OWN.migrate
current_revision = _OWN.current_revision
head_revision = _OWN.head_revision
schema_gap = _OWN.gap
