"""An import that stands still between its last staged line and its publication, for as long as a test wants."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, select

from tests.support.memory_house import house, question, remembered
from threadmark.memory import Imported, Recollection, Scope
from threadmark.memory.store.job_tables import METADATA

__all__ = ["TENANT", "StandingImport", "exported_elsewhere", "row_counts", "standing_import"]

TENANT = Scope(tenant_id="acme", namespace=())


class StandingImport:
    """The import and its two signs: it has staged everything; it may go on."""

    def __init__(self) -> None:
        self.has_staged = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.task: asyncio.Task[Imported]

    async def end(self) -> Imported:
        """Let it go on, and see what became of it."""
        self.may_go_on.set()
        return await self.task


@asynccontextmanager
async def standing_import(memory: Recollection, lines: Collection[str], scope: Scope) -> AsyncIterator[StandingImport]:
    """An import of `lines` that has staged all of them and is not published."""
    importer, standing = memory._importer, StandingImport()
    publish = importer._published

    async def wait(*given: Any) -> None:
        standing.has_staged.set()
        await standing.may_go_on.wait()
        await publish(*given)

    importer._published = wait  # type: ignore[method-assign, assignment]
    standing.task = asyncio.create_task(memory.import_(lines, scope=scope))
    arrived = asyncio.create_task(standing.has_staged.wait())
    try:
        await asyncio.wait([arrived, standing.task], return_when=asyncio.FIRST_COMPLETED)
        importer._published = publish  # type: ignore[method-assign]
        yield standing
    finally:
        standing.may_go_on.set()
        arrived.cancel()
        await asyncio.gather(standing.task, arrived, return_exceptions=True)


async def exported_elsewhere(folder: Path, *drafts: Any) -> list[str]:
    """The export of another deployment, which remembers `drafts` and was asked for them once."""
    other_folder = folder / "other"
    await asyncio.to_thread(other_folder.mkdir)
    async with house(f"sqlite:///{other_folder}/memory.db") as other:
        await remembered(other, *drafts, scope=TENANT)
        await other.recall(question("likes", run_ref="imported-run"))
        return list(await other.export(scope=TENANT))


async def row_counts(memory: Recollection) -> dict[str, int]:
    """How many rows each table has; places, which remain empty, and the numbers of locks left out."""
    left_out = {"memory_namespace", "memory_namespace_prefix", "memory_attribute_lock", "memory_space"}

    def count(connection: Connection) -> dict[str, int]:
        return {
            name: int(connection.scalar(select(func.count()).select_from(table)) or 0)
            for name, table in METADATA.tables.items()
            if name not in left_out
        }

    return {name: number for name, number in (await memory._database.read(count)).items() if number}
