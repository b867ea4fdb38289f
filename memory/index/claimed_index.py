"""An index with one owner: in every other process it is unavailable, and the database answers alone."""

from collections.abc import Sequence

from threadmark.memory.errors import IndexUnavailable
from threadmark.memory.index.index import Arms, Entry, Index, Probe, Within
from threadmark.memory.index.index_claim import Claim
from threadmark.memory.pools import UPKEEP

__all__ = ["ClaimedIndex"]


class ClaimedIndex:
    """`index` while this process has the claim. Every call raises IndexUnavailable while it has not."""

    def __init__(self, index: Index, claim: Claim) -> None:
        self._index = index
        self._claim = claim
        self._holder: str | None = "no process yet"

    async def take(self) -> None:
        """Take the claim, or see that it still holds. Raises IndexUnavailable, with the name of its holder."""
        try:
            self._holder = await UPKEEP.run(self._claim.take)
        except OSError as error:
            self._holder = "no process"
            raise IndexUnavailable(f"the index cannot be owned: {error.strerror}") from error
        self._mine()

    async def open(self, space: str, dimension: int) -> None:
        """Make the space if it is not there, and be ready to answer."""
        await self._mine().open(space, dimension)

    async def put(self, space: str, entries: Sequence[Entry]) -> None:
        """Keep the entries, in place of those with the same numbers."""
        await self._mine().put(space, entries)

    async def remove(self, space: str, numbers: Sequence[int]) -> None:
        """Forget these entries."""
        await self._mine().remove(space, numbers)

    async def near(self, space: str, probe: Probe, place: Within, count_max: int) -> Arms:
        """The best `count_max` entries of each arm."""
        return await self._mine().near(space, probe, place, count_max)

    async def score(self, space: str, probe: Probe, place: Within, numbers: Sequence[int]) -> Arms:
        """Every arm's score of these entries."""
        return await self._mine().score(space, probe, place, numbers)

    async def digests(self, space: str, after: int, count_max: int) -> list[tuple[int, str]]:
        """Numbers above `after` with their digests, in order."""
        return await self._mine().digests(space, after, count_max)

    async def count(self, space: str) -> int:
        """How many entries the space has."""
        return await self._mine().count(space)

    async def drop(self, space: str) -> None:
        """Forget the whole space."""
        await self._mine().drop(space)

    async def close(self) -> None:
        """Close the index, then let the claim go."""
        try:
            await self._index.close()
        finally:
            await UPKEEP.run(self._claim.release)

    def _mine(self) -> Index:
        if self._holder is not None:
            raise IndexUnavailable(f"the index belongs to {self._holder}; this process answers from the database")
        return self._index
