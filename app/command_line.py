"""What the command `threadmark` can do, and which of its failures are told in a sentence."""

import argparse
import sys
from collections.abc import Sequence

from app.access.issue import NoSuchKey
from app.commands import doctor, keys, memory, migrate, serve, verify, worker
from app.commands.memory import IndexElsewhere
from app.migrating import MigrationGap
from app.serving import CannotListen
from app.version import VERSION
from state import MigrationBlocked, SessionsNotKept
from workers.data_dir import DataDirRefused
from workers.refusals import DefinitionRefused
from workers.settings import SettingsRefused

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
    for module in (serve, worker, migrate, keys, verify, memory, doctor):
        module.add_to(commands)
    return parser
