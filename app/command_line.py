"""What the command `threadmark` can do, and which of its failures are told in a sentence."""

import argparse
import sys
from collections.abc import Sequence

from threadmark.app.access.issue import NoSuchKey
from threadmark.app.commands import api_keys, doctor, memory_index, migrate, serve, verify, worker
from threadmark.app.commands.memory_index import IndexElsewhere
from threadmark.app.schema import MigrationGap
from threadmark.app.server import CannotListen
from threadmark.app.version import VERSION
from threadmark.state import MigrationBlocked, SessionsNotKept
from threadmark.workers.agents.definition_errors import DefinitionRefused
from threadmark.workers.data_dir import DataDirRefused
from threadmark.workers.settings.settings import SettingsRefused

__all__ = ["run"]

#: What a person can mend: told in a sentence. Everything else is a defect and shows its traceback.
_TOLD = (
    SettingsRefused,
    CannotListen,
    DataDirRefused,
    MigrationBlocked,
    MigrationGap,
    NoSuchKey,
    DefinitionRefused,
    IndexElsewhere,
    PermissionError,
    SessionsNotKept,
)
_REFUSED = 2


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command of `argv`; the exit code: 0 done, 1 something was found, 2 refused."""
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
    except _TOLD as error:
        print(f"threadmark: {error}", file=sys.stderr)
        return _REFUSED
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="threadmark", description="A self-hosted server for durable chat agents.")
    parser.add_argument("--version", action="version", version=f"threadmark {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in (serve, worker, migrate, api_keys, verify, memory_index, doctor):
        module.add_to(commands)
    return parser
