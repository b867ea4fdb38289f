"""`threadmark keys`: API keys, for operators with access to the database itself."""

import argparse
import asyncio
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import partial

from sqlalchemy import Connection

from threadmark.app.access import ApiKey, Scope, Token, key_store
from threadmark.app.access.key import NoSuchKey
from threadmark.app.commands.common import open_state_database, settings_of

__all__ = ["create_key", "list_keys", "revoke_key"]


def create_key(arguments: argparse.Namespace) -> int:
    """Make a key and print its token."""
    return asyncio.run(_create(arguments))


def list_keys(arguments: argparse.Namespace) -> int:
    """Print a table of the keys."""
    return asyncio.run(_list(arguments))


def revoke_key(arguments: argparse.Namespace) -> int:
    """Revoke a key. Raises NoSuchKey."""
    return asyncio.run(_revoke(arguments))


async def _create(arguments: argparse.Namespace) -> int:
    now, token = datetime.now(UTC), Token.fresh()
    unit = partial(
        key_store.add_key,
        token=token,
        tenant_id=arguments.tenant,
        label=arguments.label,
        scopes=frozenset(map(Scope, arguments.scopes)),
        now=now,
        expires_at=None if arguments.days is None else now + timedelta(days=arguments.days),
    )
    async with open_state_database(settings_of(arguments)) as database:
        key = await database.write(unit)
    print(f"key {key.key_id} of tenant {key.tenant_id}; it is shown this once:", file=sys.stderr)
    print(token.text)
    return 0


async def _list(arguments: argparse.Namespace) -> int:
    async with open_state_database(settings_of(arguments)) as database:
        keys = await database.read(partial(key_store.every_key, tenant_id=arguments.tenant))
    rows: list[tuple[str, ...]] = [("key id", "tenant", "label", "scopes", "created", "last used", "status")]
    rows += [_row(key, datetime.now(UTC)) for key in keys]
    print(_table(rows))
    return 0


async def _revoke(arguments: argparse.Namespace) -> int:
    def unit(connection: Connection) -> None:
        if key_store.find_key(connection, arguments.key_id) is None:
            raise NoSuchKey(arguments.key_id)
        key_store.revoke_key(connection, arguments.key_id, datetime.now(UTC))

    async with open_state_database(settings_of(arguments)) as database:
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
