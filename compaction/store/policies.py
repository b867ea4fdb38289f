"""Named policies: a row for each version, the newest counts. No row is changed, and no number is used twice."""

from typing import Any

import msgspec
from sqlalchemy import Connection, Row, func, select

from threadmark.compaction import tables
from threadmark.compaction.model.policy import Policy
from threadmark.compaction.model.records import KeptPolicy
from threadmark.db.portable import insert_new
from threadmark.state import from_us

__all__ = ["add_version", "find_policy", "list_policies", "list_versions"]

_POLICY = msgspec.json.Decoder(Policy)
_column = tables.policy.c


def find_policy(connection: Connection, tenant_id: str, name: str, version: int | None = None) -> KeptPolicy | None:
    """The version of the tenant's policy, given up or not; without `version`, the newest."""
    statement = select(tables.policy).where(_column.tenant_id == tenant_id, _column.name == name)
    if version is not None:
        statement = statement.where(_column.version == version)
    row = connection.execute(statement.order_by(_column.version.desc()).limit(1)).one_or_none()
    return None if row is None else _kept(row)


def list_policies(connection: Connection, tenant_id: str, *, after_name: str, count_max: int) -> list[KeptPolicy]:
    """The tenant's policies that were not given up, each in its newest version, in the order of their names."""
    newest = (
        select(_column.name, func.max(_column.version).label("version"))
        .where(_column.tenant_id == tenant_id, _column.name > after_name)
        .group_by(_column.name)
        .subquery()
    )
    statement = (
        select(tables.policy)
        .join(newest, (newest.c.name == _column.name) & (newest.c.version == _column.version))
        .where(_column.tenant_id == tenant_id, _column.policy.is_not(None))
        .order_by(_column.name)
        .limit(count_max)
    )
    return [_kept(row) for row in connection.execute(statement)]


def list_versions(
    connection: Connection, tenant_id: str, name: str, *, below: int | None, count_max: int
) -> list[KeptPolicy]:
    """The versions of the tenant's policy, newest first; those that are below one."""
    statement = select(tables.policy).where(_column.tenant_id == tenant_id, _column.name == name)
    if below is not None:
        statement = statement.where(_column.version < below)
    return [_kept(row) for row in connection.execute(statement.order_by(_column.version.desc()).limit(count_max))]


def add_version(connection: Connection, tenant_id: str, kept: KeptPolicy, now_us: int) -> KeptPolicy | None:
    """Keep a version; None when another caller has just used its number."""
    row = insert_new(
        connection,
        tables.policy,
        {
            "tenant_id": tenant_id,
            "name": kept.name,
            "version": kept.version,
            "policy": None if kept.policy is None else msgspec.json.encode(kept.policy),
            "requested_by": kept.requested_by,
            "created_at": now_us,
        },
    )
    return None if row is None else _kept(row)


def _kept(row: Row[Any]) -> KeptPolicy:
    return KeptPolicy(
        name=row.name,
        version=row.version,
        policy=None if row.policy is None else _POLICY.decode(row.policy),
        requested_by=row.requested_by,
        created_at=from_us(row.created_at),
    )
