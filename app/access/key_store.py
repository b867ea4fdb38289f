"""Keys in the database: values in, one statement, rows out. Each is a unit for `Database.write` or `Database.read`."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, insert, or_, select, text, update

from threadmark.app.access import tables
from threadmark.app.access.key import ApiKey, Token
from threadmark.app.access.scopes import Scope
from threadmark.state import from_us, to_us

__all__ = [
    "TOUCH_S",
    "StoredKey",
    "add_key",
    "count_keys",
    "cursor_secret",
    "end_key",
    "every_key",
    "find_key",
    "list_keys",
    "revoke_key",
    "take_turn",
    "touch_key",
]

#: `last_used_at` is written once in this time, so that reading costs no commit.
TOUCH_S = 60
#: The advisory lock for making the first key; any number that nothing else in the database uses.
_FIRST_KEY = 5_190_337_284_611_905

_KEYS = tables.api_key
_COLUMNS = _KEYS.c


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key and what its secret is compared with."""

    key: ApiKey
    secret_digest: bytes = field(repr=False)


def add_key(
    connection: Connection,
    token: Token,
    *,
    tenant_id: str,
    label: str,
    scopes: frozenset[Scope],
    now: datetime,
    expires_at: datetime | None = None,
) -> ApiKey:
    """Keep a new key."""
    row = connection.execute(
        insert(_KEYS)
        .values(
            key_id=token.key_id,
            tenant_id=tenant_id,
            label=label,
            scopes=" ".join(sorted(scopes)),
            secret_digest=token.secret_digest,
            created_at=to_us(now),
            expires_at=None if expires_at is None else to_us(expires_at),
        )
        .returning(_KEYS)
    ).one()
    return _key_of(row)


def find_key(connection: Connection, key_id: str) -> StoredKey | None:
    """The key with this id, of whatever tenant."""
    row = connection.execute(select(_KEYS).where(_COLUMNS.key_id == key_id)).one_or_none()
    return None if row is None else StoredKey(_key_of(row), bytes(row.secret_digest))


def list_keys(
    connection: Connection, tenant_id: str, *, count_max: int, around: int | None, backward: bool
) -> list[ApiKey]:
    """Keys of the tenant after (backward: before) the key numbered `beside`, nearest first; newest first overall."""
    query = select(_KEYS).where(_COLUMNS.tenant_id == tenant_id).limit(count_max)
    if backward:
        query = query.where(_COLUMNS.number > around).order_by(_COLUMNS.number)
    else:
        query = query.order_by(_COLUMNS.number.desc())
        if around is not None:
            query = query.where(_COLUMNS.number < around)
    return [_key_of(row) for row in connection.execute(query)]


def every_key(connection: Connection, tenant_id: str | None) -> list[ApiKey]:
    """All keys, oldest first, of one tenant or of all: for the operator's own eyes."""
    query = select(_KEYS).order_by(_COLUMNS.number)
    if tenant_id is not None:
        query = query.where(_COLUMNS.tenant_id == tenant_id)
    return [_key_of(row) for row in connection.execute(query)]


def revoke_key(connection: Connection, key_id: str, now: datetime) -> None:
    """Revoke the key permanently; a key that is revoked already keeps its instant."""
    live = _COLUMNS.revoked_at.is_(None)
    connection.execute(update(_KEYS).where(_COLUMNS.key_id == key_id, live).values(revoked_at=to_us(now)))


def end_key(connection: Connection, key_id: str, expires_at: datetime) -> None:
    """Let the key expire at `expires_at`, if it would not expire earlier."""
    later = or_(_COLUMNS.expires_at.is_(None), _COLUMNS.expires_at > to_us(expires_at))
    connection.execute(update(_KEYS).where(_COLUMNS.key_id == key_id, later).values(expires_at=to_us(expires_at)))


def touch_key(connection: Connection, key_id: str, now: datetime) -> None:
    """Note that the key was used; once in TOUCH_S, however many processes saw it used."""
    long_ago = or_(_COLUMNS.last_used_at.is_(None), _COLUMNS.last_used_at <= to_us(now) - TOUCH_S * 1_000_000)
    connection.execute(update(_KEYS).where(_COLUMNS.key_id == key_id, long_ago).values(last_used_at=to_us(now)))


def take_turn(connection: Connection) -> None:
    """Wait for others that are about to make the first key, until the end of the transaction. SQLite has one writer."""
    if connection.dialect.name != "sqlite":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _FIRST_KEY})


def count_keys(connection: Connection) -> int:
    """How many keys there are, revoked ones included."""
    return connection.execute(select(func.count()).select_from(_KEYS)).scalar_one()


def has_operator(connection: Connection, now: datetime) -> bool:
    """Whether a key opens everything at `now`."""
    operator = f"%{Scope.OPERATOR}%"
    live = or_(_COLUMNS.expires_at.is_(None), _COLUMNS.expires_at > to_us(now))
    query = select(_KEYS.c.number).where(_COLUMNS.scopes.like(operator), _COLUMNS.revoked_at.is_(None), live)
    return connection.execute(query.limit(1)).one_or_none() is not None


def cursor_secret(connection: Connection) -> bytes:
    """The secret that seals cursors; the migration made it."""
    columns = tables.server_secret.c
    return bytes(connection.execute(select(columns.value).where(columns.name == "cursor")).scalar_one())


def _key_of(row: Any) -> ApiKey:
    return ApiKey(
        number=row.number,
        key_id=row.key_id,
        tenant_id=row.tenant_id,
        label=row.label,
        scopes=frozenset(map(Scope, row.scopes.split())),
        created_at=from_us(row.created_at),
        expires_at=_instant(row.expires_at),
        revoked_at=_instant(row.revoked_at),
        last_used_at=_instant(row.last_used_at),
    )


def _instant(value: int | None) -> datetime | None:
    return None if value is None else from_us(value)
