"""What commands share: settings from flags and environment, and the database for the length of a command."""

import argparse
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

from threadmark.app.schema import MigrationGap, gaps
from threadmark.state import Database
from threadmark.workers.data_dir import make_data_dir
from threadmark.workers.settings.settings import Settings

__all__ = ["environment_of", "open_database", "settings_of"]

#: Flags that stand in for an environment variable.
_FLAGS = {"host": "HOST", "port": "PORT", "data_dir": "THREADMARK_DATA_DIR"}


def environment_of(arguments: argparse.Namespace) -> Mapping[str, str]:
    """The environment, with what the flags say in its place."""
    given = {name: getattr(arguments, flag, None) for flag, name in _FLAGS.items()}
    return {**os.environ, **{name: value for name, value in given.items() if value is not None}}


def settings_of(arguments: argparse.Namespace) -> Settings:
    """The settings of this command. Raises SettingsRefused."""
    return Settings.from_environment(environment_of(arguments))


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[Database]:
    """The state database. Raises MigrationGap where it was never migrated to what this code needs."""
    make_data_dir(settings.data_dir)
    if found := gaps(settings):
        raise MigrationGap(found)
    # A command is not a request: what it reads may take long, and nobody waits behind it.
    long_s = settings.limits.maintenance_s
    limits = replace(settings.limits, request_s=long_s, read_s=long_s, write_s=long_s)
    database = Database.open(settings.state_database_url, limits=limits)
    try:
        yield database
    finally:
        await database.close()
