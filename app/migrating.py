"""Migrating the state database: what state keeps in it, and what the API does."""

import app.migrations
import state
from workers.settings import Settings
from workers.wiring import migrate_state

__all__ = ["MigrationGap", "gaps", "migrate_all"]

#: What has migrations of its own, and where its revision and the one needed are asked for.
_PARTS = (
    ("state", state.current_revision, state.head_revision),
    ("app", app.migrations.current_revision, app.migrations.head_revision),
)


class MigrationGap(RuntimeError):
    """The database is not at the revisions this code needs; nothing was started."""

    def __init__(self, found: list[str]) -> None:
        super().__init__(f"the state database is behind ({'; '.join(found)}): run `threadmark migrate`")


def migrate_all(settings: Settings) -> None:
    """Make the data directory and bring the state database to the head revisions. Blocks."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    migrate_state(settings)
    engine = state.open_engine(settings.state_database_url, write=True)
    try:
        app.migrations.migrate(engine)
    finally:
        engine.dispose()


def gaps(settings: Settings) -> list[str]:
    """What the database lacks, a phrase for each part that is behind; it is read and not changed. Blocks."""
    engine = state.open_engine(settings.state_database_url, write=False)
    try:
        return [
            f"{part} is at revision {at}, needed is {needed}"
            for part, current, head in _PARTS
            if (at := current(engine)) != (needed := head())
        ]
    finally:
        engine.dispose()
