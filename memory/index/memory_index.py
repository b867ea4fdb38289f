"""An index in this process's memory: the fallback that needs nothing, and the measure of the others."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from threadmark.memory.errors import IndexUnavailable
from threadmark.memory.index.index import Arms, Entry, Probe, Vector, Within
from threadmark.memory.text.bm25 import idf

__all__ = ["MemoryIndex"]


class _Space:
    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.entries: dict[int, Entry] = {}
        self.tagged: dict[str, set[int]] = defaultdict(set)
        self.postings: dict[str, dict[int, dict[int, float]]] = {"text": {}, "context": {}}

    def put(self, entry: Entry) -> None:
        if entry.dense is not None and len(entry.dense) != self.dimension:
            raise IndexUnavailable(f"a vector of {len(entry.dense)} does not fit a space of {self.dimension}")
        self.remove(entry.number)
        self.entries[entry.number] = entry
        for each in entry.tags:
            self.tagged[each].add(entry.number)
        for arm, weights in (("text", entry.text), ("context", entry.context)):
            for at, weight in weights.items():
                self.postings[arm].setdefault(at, {})[entry.number] = weight

    def remove(self, number: int) -> None:
        entry = self.entries.pop(number, None)
        if entry is None:
            return
        for each in entry.tags:
            self.tagged[each].discard(number)
        for arm, weights in (("text", entry.text), ("context", entry.context)):
            for at in weights:
                self.postings[arm][at].pop(number, None)

    def inside(self, groups: Sequence[frozenset[str]]) -> set[int]:
        found: set[int] | None = None
        for group in groups:
            members = set[int]().union(*(self.tagged.get(each, set[int]()) for each in group))
            found = members if found is None else found & members
        return found or set()

    def scores(self, probe: Probe, place: Within, among: set[int]) -> Arms:
        corpus = self.inside(place.corpus or place.groups)
        arms: Arms = {arm: self._lexical(arm, probe.terms, corpus, among) for arm in self.postings}
        if probe.dense is not None:
            arms["dense"] = self._dense(probe.dense, among)
        return arms

    def _dense(self, vector: Vector, among: set[int]) -> dict[int, float]:
        found = [(each, dense) for each in sorted(among) if (dense := self.entries[each].dense) is not None]
        if not found:
            return {}
        matrix = np.asarray([dense for _, dense in found], np.float32)
        near = (matrix @ np.asarray(vector, np.float32)).tolist()
        return {each: score for (each, _), score in zip(found, near, strict=True)}

    def _lexical(self, arm: str, terms: Mapping[int, float], corpus: set[int], among: set[int]) -> dict[int, float]:
        scores: dict[int, float] = defaultdict(float)
        for at, weight in terms.items():
            holders = self.postings[arm].get(at, {})
            inside = [each for each in holders if each in corpus]
            rare = weight * idf(len(corpus), len(inside))
            for each in inside:
                if each in among:
                    scores[each] += rare * holders[each]
        return dict(scores)


class MemoryIndex:
    """Keeps its spaces in dictionaries. It forgets them with the process; the database builds them again."""

    def __init__(self) -> None:
        self._spaces: dict[str, _Space] = {}

    async def open(self, space: str, dimension: int) -> None:
        """Make the space if it is not there."""
        self._spaces.setdefault(space, _Space(dimension))

    async def put(self, space: str, entries: Sequence[Entry]) -> None:
        """Keep the entries, in place of those with the same numbers."""
        for entry in entries:
            self._space(space).put(entry)

    async def remove(self, space: str, numbers: Sequence[int]) -> None:
        """Forget these entries."""
        for each in numbers:
            self._space(space).remove(each)

    async def near(self, space: str, probe: Probe, place: Within, count_max: int) -> Arms:
        """The best `count_max` entries of each arm."""
        held = self._space(space)
        arms = held.scores(probe, place, held.inside(place.groups))
        return {arm: _best(scores, count_max) for arm, scores in arms.items()}

    async def score(self, space: str, probe: Probe, place: Within, numbers: Sequence[int]) -> Arms:
        """Every arm's score of these entries."""
        held = self._space(space)
        return held.scores(probe, place, held.inside(place.groups) & set(numbers))

    async def digests(self, space: str, after: int, count_max: int) -> list[tuple[int, str]]:
        """Numbers above `after` with their digests, in order."""
        entries = self._space(space).entries
        numbers = sorted(each for each in entries if each > after)
        return [(each, entries[each].digest) for each in numbers[:count_max]]

    async def count(self, space: str) -> int:
        """How many entries the space has."""
        return len(self._space(space).entries)

    async def drop(self, space: str) -> None:
        """Forget the whole space."""
        self._spaces.pop(space, None)

    async def close(self) -> None:
        """Nothing to let go of."""

    def _space(self, name: str) -> _Space:
        try:
            return self._spaces[name]
        except KeyError:
            raise IndexUnavailable(f"no space {name!r}") from None


def _best(scores: Mapping[int, float], count_max: int) -> dict[int, float]:
    order = sorted(scores, key=lambda each: (-scores[each], each))
    return {each: scores[each] for each in order[:count_max]}
