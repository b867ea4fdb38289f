"""Migrated databases to copy: hundreds of tests begin with empty ones, and migrating is most of what that costs."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from threadmark.app.schema import migrate_all
from threadmark.workers.settings.settings import Settings

__all__ = ["migrate_anew"]

_NAMES = ("state.db", "memory.db")


def migrate_anew(settings: Settings) -> None:
    """What `migrate_all` does; by copying, where it would make both databases as SQLite files of the data directory."""
    paths = [settings.data_dir / name for name in _NAMES]
    urls = [settings.state_database_url, settings.memory_database_url]
    if urls != [f"sqlite:///{path}" for path in paths] or any(path.exists() for path in paths):
        migrate_all(settings)
        return
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in paths:
        shutil.copyfile(_template() / path.name, path)


@cache
def _template() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="threadmark-template-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    migrate_all(Settings.from_environment({"THREADMARK_DATA_DIR": str(folder)}))
    return folder
