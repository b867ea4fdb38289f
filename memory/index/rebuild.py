"""Filling a space from the database, swapping to it, and proving that index and database agree."""

from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from threadmark.memory.embedders.embedder import Embedder, space_name
from threadmark.memory.errors import EmbedderFailed
from threadmark.memory.index.index import Index
from threadmark.memory.index.index_documents import page
from threadmark.memory.index.indexer import Indexer, dimension_of, embedded
from threadmark.memory.store.database import Database
from threadmark.memory.store.outbox import enqueue_again, pending_count
from threadmark.memory.store.spaces import Space, SpaceStatus, advance, begin, forget, live, serving_or_begin, swap
from threadmark.memory.store.statements import chunks

__all__ = ["Agreement", "Rebuild"]

PAGE_COUNT = 512
DIGEST_PAGE_COUNT = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How database and index compare, by number and digest, in the serving space."""

    space: str
    assertion_count: int
    entry_count: int
    missing: tuple[int, ...]  #: in the database only
    stale: tuple[int, ...]  #: in both, made from other content
    foreign: tuple[int, ...]  #: in the index only
    pending_count: int  #: still in the outbox; not among the differences

    @property
    def agrees(self) -> bool:
        """Whether nothing differs and nothing is behind."""
        return not (self.missing or self.stale or self.foreign or self.pending_count)


class Rebuild:
    """Spaces of one index over one database."""

    def __init__(self, database: Database, index: Index, embedder: Embedder, indexer: Indexer) -> None:
        self._database = database
        self._index = index
        self._embedder = embedder
        self._indexer = indexer

    async def serving(self) -> Space | None:
        """The space that answers."""
        spaces = await self._database.read(live)
        return next((each for each in spaces if each.status is SpaceStatus.SERVING), None)

    async def ensure(self, now: int) -> None:
        """Have a space that answers, and what it lost filled in: a new deployment, or an index that was thrown away."""
        space = await self.serving()
        if space is None:
            space = await self._database.write(lambda c: serving_or_begin(c, space_name(self._embedder), now))
        await self._index.open(space.name, dimension_of(space.name))
        if await self._index.count(space.name) == 0:
            await self._fill(Space(name=space.name, status=space.status, built_to=0))

    async def reindex(self, now: int) -> str:
        """Build a new space beside the serving one, let it serve, drop the old one; the new one's name.

        Recall goes on meanwhile, from the old space. Interrupted, it goes on where it was when it is called again.
        Raises EmbedderFailed and IndexUnavailable with the old space still serving.
        """
        spaces = await self._database.read(live)
        mine = [each for each in spaces if each.status is SpaceStatus.BUILDING and self._indexer.can_embed(each)]
        space = mine[0] if mine else await self._database.write(lambda c: begin(c, space_name(self._embedder), now))
        await self._index.open(space.name, dimension_of(space.name))
        if space.built_to and await self._index.count(space.name) == 0:
            space = Space(name=space.name, status=space.status, built_to=0)
        await self._fill(space)
        await self._indexer.drain()
        await self._database.write(lambda c: swap(c, space.name))
        await self.drop_retired()
        return space.name

    async def drop_retired(self) -> None:
        """Drop every space that neither serves nor is being built for this embedder."""
        for each in await self._database.read(live):
            name = each.name
            if each.status is SpaceStatus.RETIRED or (
                each.status is SpaceStatus.BUILDING and not self._indexer.can_embed(each)
            ):
                async with self._indexer.busy:
                    # Struck off first: a space that is on the list and not in the index would be opened again, empty.
                    await self._database.write(partial(forget, name=name))
                    await self._index.drop(name)

    async def verify(self, *, repair: bool = False) -> Agreement:
        """Compare database and index; with `repair`, queue what differs and remove what is foreign."""
        space = await self.serving()
        if space is None:
            raise EmbedderFailed("no space serves; memory was never opened with an embedder")
        await self._index.open(space.name, dimension_of(space.name))
        async with self._indexer.busy:
            kept = await self._digests(space.name)
            wanted = await self._wanted()
            differing = {each for each in wanted.keys() & kept.keys() if wanted[each] != kept[each]}
            missing, foreign = wanted.keys() - kept.keys(), kept.keys() - wanted.keys()
            pending = await self._database.read(pending_count)
            if repair:
                for numbers in chunks(sorted(foreign)):
                    await self._index.remove(space.name, numbers)
                # Each part is a transaction of its own, and others write in between.
                for numbers in chunks(sorted(differing | missing)):
                    await self._database.write(partial(enqueue_again, numbers=numbers))
        return Agreement(
            space=space.name,
            assertion_count=len(wanted),
            entry_count=len(kept),
            missing=tuple(sorted(missing)),
            stale=tuple(sorted(differing)),
            foreign=tuple(sorted(foreign)),
            pending_count=pending,
        )

    async def _fill(self, space: Space) -> None:
        after = space.built_to
        while True:
            async with self._indexer.busy:
                found = await self._database.read(partial(page, after=after, count_max=PAGE_COUNT))
                if not found:
                    return
                vectors, failed = await embedded(self._embedder, found)
                await self._index.put(space.name, self._indexer.entries(space, found, vectors))
                after = found[-1].number
                again = sorted(failed)
                await self._database.write(partial(_filled, name=space.name, built_to=after, again=again))

    async def _digests(self, space: str) -> dict[int, str]:
        kept: dict[int, str] = {}
        after = 0
        while found := await self._index.digests(space, after, DIGEST_PAGE_COUNT):
            kept.update(found)
            after = found[-1][0]
        return kept

    async def _wanted(self) -> dict[int, str]:
        wanted: dict[int, str] = {}
        after = 0
        while True:
            found = await self._database.read(partial(page, after=after, count_max=DIGEST_PAGE_COUNT))
            if not found:
                return wanted
            wanted.update((each.number, each.digest) for each in found)
            after = found[-1].number


def _filled(connection: Connection, name: str, built_to: int, again: list[int]) -> None:
    advance(connection, name, built_to)
    enqueue_again(connection, again)
