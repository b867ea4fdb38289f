"""`threadmark migrate`: bring both databases to what this code needs."""

import argparse

from app.commands.common import Commands, command, settings_of
from app.migrating import all_gaps, migrate_all

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Declare the command."""
    command(commands, "migrate", "Bring both databases to what this version needs.").set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments)
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    before = all_gaps(settings)
    migrate_all(settings)
    print("\n".join(f"migrated: {gap}" for gap in before) or "nothing to do: both databases are up to date")
    return 0
