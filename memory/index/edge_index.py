"""The embedded index: Qdrant's own engine in this process, through one worker thread.

One shard is one folder is one space. The engine is synchronous and takes one process per folder; its write-ahead log
keeps what was put when the process is killed.
"""

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import qdrant_edge as edge

from threadmark.db.execution.pools import Pool
from threadmark.memory.errors import IndexUnavailable
from threadmark.memory.index.index import Arms, Entry, Probe, Within

__all__ = ["EdgeIndex"]

T = TypeVar("T")
_SPACE = re.compile(r"[a-z0-9][a-z0-9.-]{0,120}")
#: Above any scope: a graph over vectors costs minutes to build, and a filtered scan of a scope costs a millisecond.
INDEXING_THRESHOLD_KB = 100_000_000


class EdgeIndex:
    """Spaces as shards under `folder`, which is made when it is missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shards: dict[str, edge.EdgeShard] = {}
        self._thread = Pool("memory-index", 1)

    async def open(self, space: str, dimension: int) -> None:
        """Load or make the shard. Raises IndexUnavailable when another process has it."""
        await self._do(lambda: self._load(space, dimension))

    async def put(self, space: str, entries: Sequence[Entry]) -> None:
        """Keep the entries, in place of those with the same numbers."""
        points = [_point(entry) for entry in entries]
        if points:
            await self._do(lambda: self._shard(space).update(edge.UpdateOperation.upsert_points(points)))

    async def remove(self, space: str, numbers: Sequence[int]) -> None:
        """Forget these entries."""
        # By number, never by filter: a filter that matches nothing deletes nothing, silently.
        if numbers:
            await self._do(lambda: self._shard(space).update(edge.UpdateOperation.delete_points(list(numbers))))

    async def near(self, space: str, probe: Probe, place: Within, count_max: int) -> Arms:
        """The best `count_max` entries of each arm."""
        return await self._query(space, probe, place, _filter(place.groups), count_max)

    async def score(self, space: str, probe: Probe, place: Within, numbers: Sequence[int]) -> Arms:
        """Every arm's score of these entries."""
        if not numbers:
            return {}
        return await self._query(space, probe, place, _filter(place.groups, numbers), len(numbers))

    async def digests(self, space: str, after: int, count_max: int) -> list[tuple[int, str]]:
        """Numbers above `after` with their digests, in order."""
        request = edge.ScrollRequest(offset=after + 1, limit=count_max, with_payload=["digest"], with_vector=False)
        found, _ = await self._do(lambda: self._shard(space).scroll(request))
        return [(int(each.id), str((each.payload or {}).get("digest"))) for each in found]

    async def count(self, space: str) -> int:
        """How many entries the space has."""
        return await self._do(lambda: self._shard(space).count(edge.CountRequest(exact=True)))

    async def drop(self, space: str) -> None:
        """Forget the whole space and its folder."""
        await self._do(lambda: self._drop(space))

    async def close(self) -> None:
        """Bring everything to disk and let go of the folders."""
        await self._do(self._close)
        self._thread.shutdown()

    async def _query(self, space: str, probe: Probe, place: Within, where: Any, count_max: int) -> Arms:
        names, queries = _requests(probe, place, where, count_max)
        if not queries:
            return {}
        batch = edge.QueryBatchRequest(queries)
        found = await self._do(lambda: self._shard(space).query_batch(batch))
        return {name: {int(each.id): each.score for each in points} for name, points in zip(names, found, strict=True)}

    async def _do(self, work: Callable[[], T]) -> T:
        try:
            return await self._thread.run(work)
        except IndexUnavailable:
            raise
        except Exception as error:  # the engine raises plain Exception, for a lost folder as for a wrong dimension
            raise IndexUnavailable(f"the embedded index failed: {error}") from error

    def _shard(self, space: str) -> edge.EdgeShard:
        try:
            return self._shards[space]
        except KeyError:
            raise IndexUnavailable(f"no space {space!r}") from None

    def _path(self, space: str) -> Path:
        if not _SPACE.fullmatch(space):
            raise IndexUnavailable(f"{space!r} is no name of a space")
        return self._folder / space

    def _load(self, space: str, dimension: int) -> None:
        if space in self._shards:
            return
        path = self._path(space)
        if (path / "segments").is_dir():
            self._shards[space] = edge.EdgeShard.load(str(path))
            return
        path.mkdir(parents=True, exist_ok=True)
        sparse = edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)
        config = edge.EdgeConfig(
            vectors={"dense": edge.EdgeVectorParams(size=dimension, distance=edge.Distance.Dot)},
            sparse_vectors={"text": sparse, "context": sparse},
            optimizers=edge.EdgeOptimizersConfig(indexing_threshold=INDEXING_THRESHOLD_KB),
        )
        shard = self._shards[space] = edge.EdgeShard.create(str(path), config)
        shard.update(edge.UpdateOperation.create_field_index("tags", edge.KeywordIndexParams()))

    def _drop(self, space: str) -> None:
        if (shard := self._shards.pop(space, None)) is not None:
            shard.close()
        shutil.rmtree(self._path(space), ignore_errors=True)

    def _close(self) -> None:
        for shard in self._shards.values():
            shard.flush()
            shard.close()
        self._shards.clear()


def _point(entry: Entry) -> edge.Point:
    vector: dict[str, Any] = {
        "text": edge.SparseVector(list(entry.text), list(entry.text.values())),
        "context": edge.SparseVector(list(entry.context), list(entry.context.values())),
    }
    if entry.dense is not None:
        vector["dense"] = list(map(float, entry.dense))
    payload = {"tags": sorted(entry.tags), "digest": entry.digest}
    return edge.Point(entry.number, vector, payload)


def _filter(groups: Sequence[frozenset[str]], numbers: Sequence[int] | None = None) -> edge.Filter:
    must: list[Any] = [edge.FieldCondition("tags", match=edge.MatchAny(sorted(group))) for group in groups]
    if numbers is not None:
        must.append(edge.HasIdCondition(set(numbers)))
    return edge.Filter(must=must)


def _requests(probe: Probe, place: Within, where: edge.Filter, count_max: int) -> tuple[list[str], list[Any]]:
    names: list[str] = []
    queries: list[Any] = []
    if probe.terms:
        sparse = edge.SparseVector(list(probe.terms), list(probe.terms.values()))
        idf = edge.SearchParams(idf=edge.IdfParams(corpus=_filter(place.corpus or place.groups)))
        for arm in ("text", "context"):
            names.append(arm)
            nearest = edge.Query.Nearest(sparse, using=arm)
            queries.append(edge.QueryRequest(count_max, query=nearest, filter=where, params=idf))
    if probe.dense is not None:
        names.append("dense")
        nearest = edge.Query.Nearest(list(map(float, probe.dense)), using="dense")
        queries.append(edge.QueryRequest(count_max, query=nearest, filter=where))
    return names, queries
