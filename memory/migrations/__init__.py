"""Migrations of the memory database; its version table is `memory_alembic_version`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine

from threadmark.db import DEFAULT_LIMITS, Limits, Purpose
from threadmark.db.migration_runner import Migrations
from threadmark.memory.store.database import open_engine

__all__ = ["VERSION_TABLE", "current_revision", "head_revision", "migrate", "schema_gap"]

VERSION_TABLE = "memory_alembic_version"
_OWN = Migrations("memory", Path(__file__).parent, VERSION_TABLE)

head_revision = _OWN.head_revision


def migrate(url: str, revision: str = "head", limits: Limits = DEFAULT_LIMITS) -> None:
    """Bring the database at `url` to `revision` (`base` for none), up or down, by the rules of `Migrations.migrate`."""
    with _opened(url, limits, write=True) as engine:
        _OWN.migrate(engine, revision)


def schema_gap(url: str, limits: Limits = DEFAULT_LIMITS) -> str | None:
    """What the database lacks, in a phrase; None for one that is at this code's revision, or beyond it."""
    with _opened(url, limits, write=False) as engine:
        return _OWN.gap(engine)


def current_revision(url: str, limits: Limits = DEFAULT_LIMITS) -> str | None:
    """The revision that the database is at; None before the first migration."""
    with _opened(url, limits, write=False) as engine:
        return _OWN.current_revision(engine)


@contextmanager
def _opened(url: str, limits: Limits, *, write: bool) -> Iterator[Engine]:
    """An engine of memory, for the length of a block."""
    purpose = Purpose.MIGRATION if write else None
    engine = open_engine(url, write=write, limits=limits, purpose=purpose)
    try:
        yield engine
    finally:
        engine.dispose()
