"""What an attribute of a tenant is declared as: one value, many, or events. Declared once, it does not change."""

from functools import partial

from sqlalchemy import Connection, insert, select

from threadmark.memory.errors import Refused
from threadmark.memory.model.assertion import Cardinality, Draft
from threadmark.memory.store.database import Database
from threadmark.memory.store.tables import attribute
from threadmark.memory.text.identity import identity_key

__all__ = ["Declarations"]


class Declarations:
    """The declarations that this process has met."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[tuple[str, str], Cardinality] = {}

    async def of(self, draft: Draft, tenant_id: str) -> Cardinality | None:
        """The cardinality of the draft's attribute, which it declares if it is new; None without an attribute.

        Raises Refused for a draft that says otherwise than was declared.
        """
        if draft.attribute is None:
            return None
        key = (tenant_id, identity_key(draft.attribute))
        if key not in self._known:
            self._known[key] = await self._database.write(
                partial(_declared, tenant_id=tenant_id, key=key[1], wanted=draft.cardinality)
            )
        if draft.cardinality not in {None, self._known[key]}:
            raise Refused("cardinality", f"of this attribute was declared as {self._known[key].value!r}")
        return self._known[key]


def _declared(connection: Connection, tenant_id: str, key: str, wanted: Cardinality | None) -> Cardinality:
    """How many values the attribute has at one instant: as first declared, else as wanted, else one."""
    found = connection.scalar(
        select(attribute.c.cardinality).where(attribute.c.tenant_id == tenant_id, attribute.c.attribute_key == key)
    )
    if found is not None:
        return Cardinality(found)
    chosen = wanted or Cardinality.ONE
    connection.execute(insert(attribute).values(tenant_id=tenant_id, attribute_key=key, cardinality=chosen))
    return chosen
