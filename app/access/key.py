"""API keys: what is stored of one, what its holder carries, and who a holder is."""

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime

from threadmark.app.access.scopes import Scope, implied
from threadmark.user_error import UserError

__all__ = ["DEFAULT_TENANT", "TENANT_PATTERN", "ApiKey", "Caller", "NoSuchKey", "Token", "is_tenant_id"]

DEFAULT_TENANT = "default"
TENANT_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

_ID_BYTES = 8
_SECRET_BYTES = 32
_TOKEN = re.compile(r"tm_([0-9a-f]{16})_([0-9a-f]{64})")


class NoSuchKey(UserError):
    """The caller's tenant has no such key."""

    def __init__(self, key_id: str) -> None:
        super().__init__(f"API key with ID {key_id} not found")


def is_tenant_id(text: str) -> bool:
    """Whether `text` can name a tenant."""
    return re.fullmatch(TENANT_PATTERN, text) is not None


@dataclass(frozen=True, slots=True)
class Token:
    """What the holder of a key carries: `tm_<id>_<secret>`. The secret is 256 random bits and is stored nowhere."""

    key_id: str
    secret: str = field(repr=False)

    @classmethod
    def fresh(cls) -> "Token":
        """A new random token."""
        return cls(secrets.token_hex(_ID_BYTES), secrets.token_hex(_SECRET_BYTES))

    @classmethod
    def parse(cls, text: str) -> "Token | None":
        """The token in `text`; None if it is not spelled like one."""
        found = _TOKEN.fullmatch(text)
        return cls(*found.groups()) if found else None

    @property
    def text(self) -> str:
        """The token as its holder sends it."""
        return f"tm_{self.key_id}_{self.secret}"

    @property
    def secret_digest(self) -> bytes:
        """SHA-256 of the secret: all that is stored. A slow hash would add nothing to 256 random bits."""
        return hashlib.sha256(self.secret.encode()).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key as it is kept. Instants are aware, UTC.

    Attributes:
        number: Rises with every key; what listings are ordered by.
        revoked_at: When it was revoked; it is kept, so that the key ids in old log lines still resolve.
        last_used_at: Precise to a minute.
    """

    number: int
    key_id: str
    tenant_id: str
    label: str
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None

    def is_live(self, now: datetime) -> bool:
        """Whether the key opens anything at `now`."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a request: the tenant whose things exist for it, the key it used, and what that key may do."""

    tenant_id: str
    key_id: str
    scopes: frozenset[Scope]

    def may(self, scope: Scope) -> bool:
        """Whether one of the caller's scopes is, or implies, `scope`."""
        return scope in implied(self.scopes)
