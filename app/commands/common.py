"""What commands share: settings from flags and environment, and either database for the length of a command."""

import argparse
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

from threadmark import memory, state
from threadmark.app.schema import MigrationGap, gaps
from threadmark.db import Limits
from threadmark.workers.data_dir import make_data_dir
from threadmark.workers.migration import memory_gaps
from threadmark.workers.settings.settings import Settings

__all__ = ["environment_of", "open_memory_database", "open_state_database", "settings_of"]

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
async def open_state_database(settings: Settings) -> AsyncIterator[state.Database]:
    """The state database. Raises MigrationGap where it was never migrated to what this code needs."""
    _check_migrated(settings, gaps)
    database = state.Database.open(settings.state_database_url, limits=_patient(settings.limits))
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def open_memory_database(settings: Settings) -> AsyncIterator[memory.Database]:
    """The memory database, which others may use meanwhile. Raises MigrationGap."""
    _check_migrated(settings, memory_gaps)
    database = memory.Database.open(settings.memory_database_url, limits=_patient(settings.limits))
    try:
        yield database
    finally:
        await database.close()


def _check_migrated(settings: Settings, gaps_of: Callable[[Settings], list[str]]) -> None:
    make_data_dir(settings.data_dir)
    if found := gaps_of(settings):
        raise MigrationGap(found)


def _patient(limits: Limits) -> Limits:
    """The limits of a command: what it reads may take long, and no request waits behind it."""
    long_s = limits.maintenance_s
    return replace(limits, request_s=long_s, read_s=long_s, write_s=long_s)
