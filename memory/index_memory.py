"""An index in this process's memory: the fallback that needs nothing, and the measure of the others."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from memory.errors import IndexUnavailable
from memory.index import Arms, Entry, Probe, Vector, Within
from memory.lexical import rarity

__all__ = ["MemoryIndex"]


class _Space:
    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.entries: dict[str, Entry] = {}
        self.tagged: dict[str, set[str]] = defaultdict(set)
        self.postings: dict[str, dict[int, dict[str, float]]] = {"text": {}, "context": {}}

    def put(self, entry: Entry) -> None:
        if entry.dense is not None and len(entry.dense) != self.dimension:
            raise IndexUnavailable(f"a vector of {len(entry.dense)} does not fit a space of {self.dimension}")
        self.remove(entry.assertion_id)
        self.entries[entry.assertion_id] = entry
        for each in entry.tags:
            self.tagged[each].add(entry.assertion_id)
        for arm, weights in (("text", entry.text), ("context", entry.context)):
            for at, weight in weights.items():
                self.postings[arm].setdefault(at, {})[entry.assertion_id] = weight

    def remove(self, assertion_id: str) -> None:
        entry = self.entries.pop(assertion_id, None)
        if entry is None:
            return
        for each in entry.tags:
            self.tagged[each].discard(assertion_id)
        for arm, weights in (("text", entry.text), ("context", entry.context)):
            for at in weights:
                self.postings[arm][at].pop(assertion_id, None)

    def inside(self, groups: Sequence[frozenset[str]]) -> set[str]:
        found: set[str] | None = None
        for group in groups:
            members = set().union(*(self.tagged.get(each, set()) for each in group))
            found = members if found is None else found & members
        return found or set()

    def scores(self, probe: Probe, place: Within, among: set[str]) -> Arms:
        corpus = self.inside(place.corpus or place.groups)
        arms: Arms = {arm: self._lexical(arm, probe.terms, corpus, among) for arm in self.postings}
        if probe.dense is not None:
            arms["dense"] = self._dense(probe.dense, among)
        return arms

    def _dense(self, vector: Vector, among: set[str]) -> dict[str, float]:
        found = [(each, dense) for each in sorted(among) if (dense := self.entries[each].dense) is not None]
        if not found:
            return {}
        matrix = np.asarray([dense for _, dense in found], np.float32)
        near = (matrix @ np.asarray(vector, np.float32)).tolist()
        return {each: score for (each, _), score in zip(found, near, strict=True)}

    def _lexical(self, arm: str, terms: Mapping[int, float], corpus: set[str], among: set[str]) -> dict[str, float]:
        scores: dict[str, float] = defaultdict(float)
        for at, weight in terms.items():
            holders = self.postings[arm].get(at, {})
            inside = [each for each in holders if each in corpus]
            rare = weight * rarity(len(corpus), len(inside))
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
        """Keep the entries, in place of those with the same ids."""
        for entry in entries:
            self._space(space).put(entry)

    async def remove(self, space: str, ids: Sequence[str]) -> None:
        """Forget the entries with these ids."""
        for each in ids:
            self._space(space).remove(each)

    async def near(self, space: str, probe: Probe, place: Within, count_max: int) -> Arms:
        """The best `count_max` entries of each arm."""
        held = self._space(space)
        arms = held.scores(probe, place, held.inside(place.groups))
        return {arm: _best(scores, count_max) for arm, scores in arms.items()}

    async def score(self, space: str, probe: Probe, place: Within, ids: Sequence[str]) -> Arms:
        """Every arm's score of these entries."""
        held = self._space(space)
        return held.scores(probe, place, held.inside(place.groups) & set(ids))

    async def digests(self, space: str, after: str | None, count_max: int) -> list[tuple[str, str]]:
        """Ids above `after` with their digests, in the order of ids."""
        entries = self._space(space).entries
        ids = sorted(each for each in entries if after is None or each > after)
        return [(each, entries[each].digest) for each in ids[:count_max]]

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


def _best(scores: Mapping[str, float], count_max: int) -> dict[str, float]:
    order = sorted(scores, key=lambda each: (-scores[each], each))
    return {each: scores[each] for each in order[:count_max]}
