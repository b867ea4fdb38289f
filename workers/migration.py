"""Bringing the databases to what this code needs. Nothing else of a worker is loaded for it."""

from threadmark import compaction, memory, state
from threadmark.db import Purpose
from threadmark.workers.settings.settings import Settings

__all__ = ["memory_gaps", "migrate_memory", "migrate_state"]


def migrate_state(settings: Settings) -> None:
    """Bring the state database, what compaction keeps in it too, to the head revisions. Blocks."""
    engine = state.open_engine(
        settings.state_database_url, write=True, limits=settings.limits, purpose=Purpose.MIGRATION
    )
    try:
        state.migrate(engine)
        compaction.migrate(engine)
    finally:
        engine.dispose()


def migrate_memory(settings: Settings) -> None:
    """Bring the memory database to the head revision. Blocks."""
    memory.migrate(settings.memory_database_url, limits=settings.limits)


def memory_gaps(settings: Settings) -> list[str]:
    """What the memory database lacks; it is read and not changed. Blocks."""
    lacking = memory.schema_gap(settings.memory_database_url, settings.limits)
    return [] if lacking is None else [lacking]
