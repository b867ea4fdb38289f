"""`threadmark keys`: API keys, by whoever may open the database itself."""

import argparse
import asyncio
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import partial

from sqlalchemy import Connection

from threadmark.app.access import ApiKey, Scope, Token
from threadmark.app.access.issue import NoSuchKey
from threadmark.app.access.key import DEFAULT_TENANT, is_tenant_id
from threadmark.app.access.key_store import add_key, every_key, find_key, revoke_key
from threadmark.app.commands.common import Commands, command, open_database, settings_of

__all__ = ["add_to"]

_DAYS_MAX = 36_500


def add_to(commands: Commands) -> None:
    """Declare the commands."""
    parser = commands.add_parser("keys", help="Make, list and revoke API keys.", description="API keys.")
    actions = parser.add_subparsers(required=True, metavar="create|list|revoke")
    create = command(actions, "create", "Make a key and print it; it is shown this once.")
    create.add_argument("--label", required=True, help="what the key is for")
    create.add_argument("--tenant", default=DEFAULT_TENANT, type=_tenant, help=f"whose key (default: {DEFAULT_TENANT})")
    create.add_argument("--scope", dest="scopes", action="append", required=True, choices=[str(each) for each in Scope])
    create.add_argument("--days", type=_days, help="how long it lasts (default: until it is revoked)")
    create.set_defaults(run=lambda arguments: asyncio.run(_create(arguments)))
    listing = command(actions, "list", "List the keys, of one tenant or of all.")
    listing.add_argument("--tenant", type=_tenant, help="whose keys (default: everybody's)")
    listing.set_defaults(run=lambda arguments: asyncio.run(_list(arguments)))
    revoke = command(actions, "revoke", "Revoke a key; it opens nothing any more within seconds.")
    revoke.add_argument("key_id", help="the id of the key, the middle part of tm_<id>_<secret>")
    revoke.set_defaults(run=lambda arguments: asyncio.run(_revoke(arguments)))


async def _create(arguments: argparse.Namespace) -> int:
    now, token = datetime.now(UTC), Token.fresh()
    unit = partial(
        add_key,
        token=token,
        tenant_id=arguments.tenant,
        label=arguments.label,
        scopes=frozenset(map(Scope, arguments.scopes)),
        now=now,
        expires_at=None if arguments.days is None else now + timedelta(days=arguments.days),
    )
    async with open_database(settings_of(arguments)) as database:
        key = await database.write(unit)
    print(f"key {key.key_id} of tenant {key.tenant_id}; it is shown this once:", file=sys.stderr)
    print(token.text)
    return 0


async def _list(arguments: argparse.Namespace) -> int:
    async with open_database(settings_of(arguments)) as database:
        keys = await database.read(partial(every_key, tenant_id=arguments.tenant))
    rows: list[tuple[str, ...]] = [("key id", "tenant", "label", "scopes", "created", "last used", "status")]
    rows += [_row(key, datetime.now(UTC)) for key in keys]
    print(_table(rows))
    return 0


async def _revoke(arguments: argparse.Namespace) -> int:
    def unit(connection: Connection) -> None:
        if find_key(connection, arguments.key_id) is None:
            raise NoSuchKey(arguments.key_id)
        revoke_key(connection, arguments.key_id, datetime.now(UTC))

    async with open_database(settings_of(arguments)) as database:
        await database.write(unit)
    print(f"key {arguments.key_id} is revoked")
    return 0


def _row(key: ApiKey, now: datetime) -> tuple[str, ...]:
    ended = "revoked" if key.revoked_at else "expired"
    return (
        key.key_id,
        key.tenant_id,
        # A label is a client's text: escaped, it cannot move the cursor of a terminal.
        key.label.encode("unicode_escape").decode() if not key.label.isprintable() else key.label,
        " ".join(sorted(key.scopes)),
        _minute(key.created_at),
        "never" if key.last_used_at is None else _minute(key.last_used_at),
        "live" if key.is_live(now) else ended,
    )


def _minute(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%d %H:%MZ")


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    held = list(rows)
    widths = [max(map(len, column)) for column in zip(*held, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in held)


def _tenant(text: str) -> str:
    if not is_tenant_id(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no tenant: 1 to 64 letters, digits, '.', '_' and '-'")
    return text


def _days(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= _DAYS_MAX):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of days from 1 to {_DAYS_MAX}")
    return int(text)
