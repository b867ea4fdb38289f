"""Policies that a tenant keeps by name. A version has the same values for ever, also after the name is gone."""

from collections.abc import Callable
from datetime import datetime

import msgspec
from sqlalchemy import Connection

from threadmark.compaction.errors import PolicyMoved
from threadmark.compaction.model.policy import Policy
from threadmark.compaction.model.records import KeptPolicy
from threadmark.compaction.store import policies
from threadmark.state import Database, NotFound, to_us

__all__ = ["Policies", "Precondition", "named_policy"]

#: Versions that others may make between our reading and our writing before it is a fault of ours.
ATTEMPTS_MAX = 20
WHAT = "Compaction policy"


class Precondition(msgspec.Struct, frozen=True):
    """What has to hold of a name before it is changed; without anything it always does.

    `versions`: the name has one of them now. `is_there`: whether the name has any.
    """

    versions: frozenset[int] | None = None
    is_there: bool | None = None

    def check(self, name: str, newest: KeptPolicy | None) -> None:
        """Raises PolicyMoved."""
        version = None if newest is None or newest.policy is None else newest.version
        is_wrong = self.versions is not None and version not in self.versions
        if is_wrong or self.is_there not in (None, version is not None):
            raise PolicyMoved(name, version)


ALWAYS = Precondition()


class Policies:
    """The verbs over named policies. A tenant's name does not exist for another tenant (NotFound)."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database, self._now = database, now

    async def put(
        self, tenant_id: str, name: str, policy: Policy, *, requested_by: str = "", condition: Precondition = ALWAYS
    ) -> tuple[KeptPolicy, bool]:
        """Give the name these values; with whether that is a new version. The same values are the same one.

        Compactions that were ordered keep the values that they were ordered with. Raises PolicyMoved.
        """

        def unit(connection: Connection) -> tuple[KeptPolicy, bool]:
            for _ in range(ATTEMPTS_MAX):
                newest = policies.find_policy(connection, tenant_id, name)
                condition.check(name, newest)
                if newest is not None and newest.policy == _named(policy, name, newest.version):
                    return newest, False
                number = 1 if newest is None else newest.version + 1
                made = self._add(connection, tenant_id, name, number, _named(policy, name, number), requested_by)
                if made is not None:
                    return made, True
            raise RuntimeError(f"no version of the policy {name!r} was free in {ATTEMPTS_MAX} attempts")

        return await self._database.write(unit, repeatable=True)

    async def get(self, tenant_id: str, name: str, version: int | None = None) -> KeptPolicy:
        """The values of the name now, or in a version, which outlives the name. Raises NotFound."""
        return await self._database.read(lambda connection: _found(connection, tenant_id, name, version))

    async def of_tenant(self, tenant_id: str, *, after_name: str = "", count_max: int = 50) -> list[KeptPolicy]:
        """The tenant's policies in the order of their names; `after_name` is the last name of the page before."""
        return await self._database.read(
            lambda connection: policies.list_policies(connection, tenant_id, after_name=after_name, count_max=count_max)
        )

    async def versions(
        self, tenant_id: str, name: str, *, below: int | None = None, count_max: int = 50
    ) -> list[KeptPolicy]:
        """What the name stood for, newest first, with the versions in which it was given up; those below a version.

        Raises NotFound for a name that never stood for anything.
        """

        def query(connection: Connection) -> list[KeptPolicy]:
            if policies.find_policy(connection, tenant_id, name) is None:
                raise NotFound(WHAT, name)
            return policies.list_versions(connection, tenant_id, name, below=below, count_max=count_max)

        return await self._database.read(query)

    async def give_up(
        self, tenant_id: str, name: str, *, requested_by: str = "", condition: Precondition = ALWAYS
    ) -> None:
        """Delete the name. A policy stored under it later has the next version number. Raises NotFound, PolicyMoved."""

        def unit(connection: Connection) -> None:
            for _ in range(ATTEMPTS_MAX):
                newest = _found(connection, tenant_id, name, None)
                condition.check(name, newest)
                number = newest.version + 1
                if self._add(connection, tenant_id, name, number, None, requested_by) is not None:
                    return
            raise RuntimeError(f"no version of the policy {name!r} was free in {ATTEMPTS_MAX} attempts")

        await self._database.write(unit)

    def _add(
        self, connection: Connection, tenant_id: str, name: str, version: int, policy: Policy | None, by: str
    ) -> KeptPolicy | None:
        now = self._now()
        kept = KeptPolicy(name=name, version=version, policy=policy, requested_by=by, created_at=now)
        return policies.add_version(connection, tenant_id, kept, to_us(now))


def named_policy(connection: Connection, tenant_id: str, name: str) -> Policy:
    """The values that the tenant's name has now, in the caller's transaction. Raises NotFound."""
    found = policies.find_policy(connection, tenant_id, name)
    if found is None or found.policy is None:
        raise NotFound(WHAT, name)
    return found.policy


def _named(policy: Policy, name: str, version: int) -> Policy:
    return msgspec.structs.replace(policy, name=name, version=version)


def _found(connection: Connection, tenant_id: str, name: str, version: int | None) -> KeptPolicy:
    found = policies.find_policy(connection, tenant_id, name, version)
    if found is None or found.policy is None:
        raise NotFound(WHAT, name if version is None else f"{name}, version {version},")
    return found
