"""`threadmark migrate`: bring the state database to what this code needs."""

import argparse

from app.commands.common import Commands, command, settings_of
from app.migrating import gaps, migrate_all

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Declare the command."""
    command(commands, "migrate", "Bring the state database to what this version needs.").set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments)
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    before = gaps(settings)
    migrate_all(settings)
    print("\n".join(f"migrated: {gap}" for gap in before) or "nothing to do: the state database is up to date")
    return 0
