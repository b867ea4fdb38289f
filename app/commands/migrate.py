"""`threadmark migrate`: bring both databases to what this code needs."""

import argparse

from threadmark.app.commands.common import settings_of
from threadmark.app.schema import all_gaps, migrate_all
from threadmark.workers.data_dir import make_data_dir

__all__ = ["run_migrate"]


def run_migrate(arguments: argparse.Namespace) -> int:
    """Bring both databases to the head revisions, and print what was done."""
    settings = settings_of(arguments)
    make_data_dir(settings.data_dir)
    before = all_gaps(settings)
    migrate_all(settings)
    print("\n".join(f"{gap}: migrated" for gap in before) or "nothing to do: both databases are up to date")
    return 0
