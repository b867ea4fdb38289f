"""What the command `threadmark` can do. Declaring it imports no command: each is loaded when it runs."""

import argparse
import sys
from collections.abc import Sequence
from typing import TypeAlias

from threadmark.app import commands
from threadmark.app.access.key import DEFAULT_TENANT, is_tenant_id
from threadmark.app.access.scopes import Scope
from threadmark.app.version import VERSION
from threadmark.user_error import UserError

__all__ = ["run"]

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_DAYS_MAX = 36_500
_REFUSED = 2


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command of `argv`; the exit code: 0 done, 1 something was found, 2 refused."""
    arguments = _parser().parse_args(argv)
    try:
        code: int = getattr(commands, arguments.action)(arguments)
    # Everything else is a defect and shows its traceback.
    except (UserError, PermissionError) as error:
        print(f"threadmark: {error}", file=sys.stderr)
        return _REFUSED
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="threadmark", description="A self-hosted server for durable chat agents.")
    parser.add_argument("--version", action="version", version=f"threadmark {VERSION}")
    declared = parser.add_subparsers(required=True, metavar="COMMAND")
    # By name: an action that was taken from `commands` here would load its module for every other command.
    serve = _command(declared, "serve", "Serve the API, and move runs unless THREADMARK_REDIS_URL is set.")
    _add_address(serve)
    serve.set_defaults(action="run_serve")
    worker = _command(declared, "worker", "Move runs, without serving the API.")
    worker.set_defaults(action="run_worker")
    migrate = _command(declared, "migrate", "Bring both databases to what this version needs.")
    migrate.set_defaults(action="run_migrate")
    _add_keys(declared)
    _add_verify(declared)
    _add_memory(declared)
    reindex = _command(declared, "reindex", "Rebuild the index of memory beside the one that serves, and swap.")
    reindex.set_defaults(action="run_reindex")
    doctor = _command(declared, "doctor", "Check settings, data directory, servers, agents and port; change nothing.")
    _add_address(doctor)
    doctor.set_defaults(action="run_doctor")
    return parser


def _add_keys(declared: Commands) -> None:
    parser = declared.add_parser("keys", help="Make, list and revoke API keys.", description="API keys.")
    actions = parser.add_subparsers(required=True, metavar="create|list|revoke")
    create = _command(actions, "create", "Make a key and print it; it is shown this once.")
    create.add_argument("--label", required=True, help="what the key is for")
    create.add_argument("--tenant", default=DEFAULT_TENANT, type=_tenant, help=f"whose key (default: {DEFAULT_TENANT})")
    create.add_argument(
        "--scope",
        dest="scopes",
        action="append",
        required=True,
        choices=[str(each) for each in Scope],
        help="what the key allows; repeat it for several scopes",
    )
    create.add_argument("--days", type=_days, help="how long it lasts (default: until it is revoked)")
    create.set_defaults(action="create_key")
    listing = _command(actions, "list", "List the keys, of one tenant or of all.")
    listing.add_argument("--tenant", type=_tenant, help="whose keys (default: everybody's)")
    listing.set_defaults(action="list_keys")
    revoke = _command(actions, "revoke", "Revoke a key; it opens nothing any more within seconds.")
    revoke.add_argument("key_id", help="the id of the key, the middle part of tm_<id>_<secret>")
    revoke.set_defaults(action="revoke_key")


def _add_verify(declared: Commands) -> None:
    parser = _command(declared, "verify", "Recompute hash chains, or compare memory and index; 1 if one does not hold.")
    parser.add_argument("what", nargs="?", choices=("state", "memory"), default="state", help="the journals (default)")
    parser.add_argument("--repair", action="store_true", help="make the index of memory agree with its database")
    parser.add_argument("--thread", metavar="ID", help="this thread alone")
    parser.set_defaults(action="run_verify")


def _add_memory(declared: Commands) -> None:
    parser = declared.add_parser("memory", help="Part what was merged under one name.", description="Names in memory.")
    actions = parser.add_subparsers(required=True, metavar="merged|split")
    merged = _command(actions, "merged", "List the histories that have more than one name; exit 1 if there are any.")
    merged.add_argument("--tenant", type=_tenant, help="of this tenant alone")
    merged.set_defaults(action="run_merged")
    split = _command(actions, "split", "Part one of them: each name gets the history of its own statements.")
    split.add_argument("--tenant", default=DEFAULT_TENANT, type=_tenant, help=f"whose (default: {DEFAULT_TENANT})")
    split.add_argument("--namespace", required=True, metavar="JSON", help='its labels, such as ["users", "7"]')
    split.add_argument("--subject", required=True, help="one of its names, or the folded one")
    split.add_argument("--attribute", required=True, help="likewise")
    split.add_argument("--dry-run", action="store_true", help="change nothing, and say what would change")
    split.set_defaults(action="run_split")


def _command(declared: Commands, name: str, summary: str) -> argparse.ArgumentParser:
    """Declare a command that knows the data directory."""
    parser = declared.add_parser(name, help=summary, description=summary)
    parser.add_argument("--data-dir", metavar="PATH", help="instead of THREADMARK_DATA_DIR")
    return parser


def _add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="instead of HOST")
    parser.add_argument("--port", help="instead of PORT")


def _tenant(text: str) -> str:
    if not is_tenant_id(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no tenant: 1 to 64 letters, digits, '.', '_' and '-'")
    return text


def _days(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= _DAYS_MAX):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of days from 1 to {_DAYS_MAX}")
    return int(text)
