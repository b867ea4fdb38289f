"""External copies: other stores erase their copies of a memory before memory itself does."""

from collections.abc import Collection
from functools import partial
from typing import Protocol

from threadmark.memory.erase.erasure_jobs import count_also, erased_ids, what_of
from threadmark.memory.erase.erasure_manifest import ErasureManifest, erasure_manifest_of
from threadmark.memory.store.database import Database

__all__ = ["CopyErasure", "ExternalCopies", "erase_copies", "erase_late_copies"]


class CopyErasure(Protocol):
    """One erasure, as it goes on outside."""

    async def erase(self, part: ErasureManifest) -> None:
        """Lose a part of what goes. It may be asked for again."""
        ...

    async def finish(self, assertion_ids: Collection[str]) -> dict[str, int]:
        """Look again, now that memory has erased it: a copy may have been in flight. Returns what was removed."""
        ...


class ExternalCopies(Protocol):
    """Keeps copies."""

    def erasure(self, tenant_id: str) -> CopyErasure:
        """Begin to lose something of a tenant."""
        ...


async def erase_copies(
    database: Database, copies: ExternalCopies, *, tenant_id: str, erasure_id: str
) -> CopyErasure | None:
    """Have the copies of what a job names erased, while memory can still tell what they are.

    None where there is nothing to do: the job is done, or it only sweeps what has expired, which no request named.
    """
    what = await database.read(partial(what_of, tenant_id=tenant_id, erasure_id=erasure_id))
    if what is None or what.expired_by is not None:
        return None
    outside = copies.erasure(tenant_id)
    after: str | None = ""
    while after is not None:
        part = await database.read(partial(erasure_manifest_of, tenant_id=tenant_id, what=what, after=after))
        await outside.erase(part)
        after = part.after
    return outside


async def erase_late_copies(database: Database, outside: CopyErasure, *, tenant_id: str, erasure_id: str) -> None:
    """Have the copies erased that were made meanwhile, and count everything with the job."""
    gone = await database.read(partial(erased_ids, erasure_id=erasure_id))
    counts = await outside.finish(gone)
    await database.write(partial(count_also, tenant_id=tenant_id, erasure_id=erasure_id, counts=counts))
