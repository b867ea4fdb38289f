"""A memory that an older version kept, with names compared folded: its database and its export."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import MetaData, Table, create_engine, func, insert, select

from tests.support.memory_house import HOME, NOW, house
from threadmark.memory import MemoryIndex, Recollection, Scope, migrate

__all__ = ["EXPORT", "believed", "bring_in", "old_url", "write_rows"]

_DATA = Path(__file__).parents[1] / "data" / "memory"
#: The lines of the export.
EXPORT = (_DATA / "before_identity.jsonl").read_text().splitlines()
_TENANT = Scope(tenant_id="acme", namespace=())


def write_rows(url: str) -> None:
    """Make the old database, by the revision that its version knew."""
    migrate(url, "0001")
    engine = create_engine(url)
    with engine.begin() as connection:
        for name, rows in json.loads((_DATA / "before_identity.json").read_text()).items():
            table = Table(name, MetaData(), autoload_with=connection)
            if rows:
                connection.execute(insert(table), rows)
            (key,) = table.primary_key.columns
            if rows and connection.dialect.name == "postgresql":
                sequence = func.pg_get_serial_sequence(name, key.name)
                connection.execute(select(func.setval(sequence, max(row[key.name] for row in rows))))
    engine.dispose()


def old_url(folder: Path) -> str:
    """A database of the old revision in a folder."""
    url = f"sqlite:///{folder}/old-memory.db"
    write_rows(url)
    return url


@asynccontextmanager
async def bring_in(url: str, way: str) -> AsyncIterator[Recollection]:
    """The old memory in a new house: its database `migrated`, or its export `imported`."""
    if way == "migrated":
        write_rows(url)
    async with house(url, MemoryIndex()) as memory:
        if way == "imported":
            await memory.import_(EXPORT, scope=_TENANT)
        await memory.index_pending()
        yield memory


async def believed(
    memory: Recollection, subject: str, attribute: str = "city", *, scope: Scope = HOME
) -> list[tuple[Any, int, int | None]]:
    """What is believed of an attribute: value, and the days before now between which it is true."""
    held = [each for each in await memory.timeline(subject, attribute, scope=scope) if each.is_held]
    days = [
        (each.value, (NOW - each.valid_from).days, None if each.valid_to is None else (NOW - each.valid_to).days)
        for each in held
    ]
    return sorted(days, key=lambda each: -each[1])
