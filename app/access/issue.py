"""Issuing and revoking keys: who may give what to whom.

An admin manages the keys of its own tenant. An operator manages those of every tenant, and alone gives out, replaces or
revokes an operator's key: an admin of the same tenant could otherwise make itself one.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from threadmark.app.access.gate import Forbidden
from threadmark.app.access.key import ApiKey, Caller, NoSuchKey, Token, is_tenant_id
from threadmark.app.access.key_store import add_key, end_key, find_key, revoke_key
from threadmark.app.access.scopes import Scope

__all__ = ["OVERLAP_S", "OVERLAP_S_MAX", "Issued", "KeyRefused", "KeyRequest", "issue", "revoke"]

#: How long a key goes on opening things after another has taken its place.
OVERLAP_S = 24 * 3600
OVERLAP_S_MAX = 30 * 24 * 3600


class KeyRefused(Exception):
    """This key cannot be made as it was wished; `path` is the place in the wish."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRequest:
    """A request for a new key. None: as the replaced key has it, or the caller's own tenant.

    Attributes:
        replaces: The id of a key whose place the new one takes. The old one expires `overlap_s` seconds later.
    """

    label: str | None = None
    scopes: frozenset[Scope] | None = None
    tenant_id: str | None = None
    expires_at: datetime | None = None
    replaces: str | None = None
    overlap_s: int = OVERLAP_S


@dataclass(frozen=True, slots=True)
class Issued:
    """A new key, and its token: here and never again."""

    key: ApiKey
    token: Token


def issue(connection: Connection, caller: Caller, spec: KeyRequest, now: datetime) -> Issued:
    """Make the key. Raises Forbidden, NoSuchKey (nothing to replace), KeyRefused; nothing was made then."""
    old = None if spec.replaces is None else _managed(connection, caller, spec.replaces)
    tenant_id = spec.tenant_id or (old.tenant_id if old else caller.tenant_id)
    label = spec.label or (old.label if old else None)
    scopes = spec.scopes or (old.scopes if old else None)
    if label is None or scopes is None:
        raise KeyRefused("$.label" if label is None else "$.scopes", "is required, unless the key replaces another")
    if not is_tenant_id(tenant_id):
        raise KeyRefused("$.tenant_id", "is 1 to 64 letters, digits, '.', '_' and '-'")
    if spec.expires_at is not None and spec.expires_at <= now:
        raise KeyRefused("$.expires_at", "is not in the future")
    _check_right(caller, tenant_id, scopes, old)
    token = Token.fresh()
    key = add_key(
        connection, token, tenant_id=tenant_id, label=label, scopes=scopes, now=now, expires_at=spec.expires_at
    )
    if old is not None:
        end_key(connection, old.key_id, now + timedelta(seconds=spec.overlap_s))
    return Issued(key, token)


def revoke(connection: Connection, caller: Caller, key_id: str, now: datetime) -> None:
    """Let the key open nothing from now on; a key revoked before stays so. Raises NoSuchKey, Forbidden."""
    _managed(connection, caller, key_id)
    revoke_key(connection, key_id, now)


def _managed(connection: Connection, caller: Caller, key_id: str) -> ApiKey:
    stored = find_key(connection, key_id)
    is_operator = caller.may(Scope.OPERATOR)
    if stored is None or not (is_operator or stored.key.tenant_id == caller.tenant_id):
        raise NoSuchKey(key_id)
    if Scope.OPERATOR in stored.key.scopes and not is_operator:
        raise Forbidden("only an operator replaces or revokes the key of an operator")
    return stored.key


def _check_right(caller: Caller, tenant_id: str, scopes: frozenset[Scope], old: ApiKey | None) -> None:
    if not caller.may(Scope.OPERATOR):
        if tenant_id != caller.tenant_id:
            raise Forbidden("only an operator manages the keys of another tenant")
        if Scope.OPERATOR in scopes:
            raise Forbidden("only an operator gives out the scope operator")
    if old is not None and old.tenant_id != tenant_id:
        raise KeyRefused("$.tenant_id", "is another tenant than that of the key to be replaced")
    if old is not None and old.revoked_at is not None:
        raise KeyRefused("$.replaces", "is revoked; issue a new key instead")
