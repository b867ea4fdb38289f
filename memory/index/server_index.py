"""The index on a Qdrant server, for several processes: the same spaces as collections."""

from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

from threadmark.memory.errors import IndexUnavailable
from threadmark.memory.index.index import Arms, Entry, Probe, Within

__all__ = ["ServerIndex"]

T = TypeVar("T")
BATCH_COUNT_MAX = 256
_LOCAL_ERRORS = (ValueError, KeyError, RuntimeError)


class ServerIndex:
    """Spaces as collections named `prefix` + space, through a client that its owner configured (address, time-out)."""

    def __init__(self, client: AsyncQdrantClient, *, prefix: str = "threadmark-") -> None:
        self._client = client
        self._prefix = prefix

    async def open(self, space: str, dimension: int) -> None:
        """Make the collection if it is not there. Raises IndexUnavailable when it has another dimension."""
        name = self._prefix + space
        if not await _answered(self._client.collection_exists(name)):
            sparse = models.SparseVectorParams(modifier=models.Modifier.IDF)
            try:
                await _answered(
                    self._client.create_collection(
                        name,
                        vectors_config={"dense": models.VectorParams(size=dimension, distance=models.Distance.DOT)},
                        sparse_vectors_config={"text": sparse, "context": sparse},
                    )
                )
            except IndexUnavailable:
                # Of several processes that start at once one makes it, and the others are refused.
                if not await _answered(self._client.collection_exists(name)):
                    raise
            await _answered(
                self._client.create_payload_index(name, "tags", field_schema=models.PayloadSchemaType.KEYWORD)
            )
        info = await _answered(self._client.get_collection(name))
        vectors = info.config.params.vectors
        size = vectors["dense"].size if isinstance(vectors, dict) else None
        if size != dimension:
            raise IndexUnavailable(f"collection {name!r} holds vectors of {size}, not of {dimension}")

    async def put(self, space: str, entries: Sequence[Entry]) -> None:
        """Keep the entries, in place of those with the same numbers; on disk when this returns."""
        for at in range(0, len(entries), BATCH_COUNT_MAX):
            points = [_point(entry) for entry in entries[at : at + BATCH_COUNT_MAX]]
            await _answered(self._client.upsert(self._prefix + space, points, wait=True))

    async def remove(self, space: str, numbers: Sequence[int]) -> None:
        """Forget these entries."""
        if numbers:
            gone = models.PointIdsList(points=list(numbers))
            await _answered(self._client.delete(self._prefix + space, gone, wait=True))

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
        found, _ = await _answered(
            self._client.scroll(
                self._prefix + space, offset=after + 1, limit=count_max, with_payload=["digest"], with_vectors=False
            )
        )
        return [(int(each.id), str((each.payload or {}).get("digest"))) for each in found]

    async def count(self, space: str) -> int:
        """How many entries the space has."""
        return (await _answered(self._client.count(self._prefix + space, exact=True))).count

    async def drop(self, space: str) -> None:
        """Forget the whole space."""
        await _answered(self._client.delete_collection(self._prefix + space))

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()

    async def _query(self, space: str, probe: Probe, place: Within, where: models.Filter, count_max: int) -> Arms:
        names, requests = _requests(probe, place, where, count_max)
        if not requests:
            return {}
        found = await _answered(self._client.query_batch_points(self._prefix + space, requests))
        return {
            name: {int(each.id): each.score for each in response.points}
            for name, response in zip(names, found, strict=True)
        }


async def _answered(call: Awaitable[T]) -> T:
    try:
        return await call
    except (ApiException, UnexpectedResponse, OSError, *_LOCAL_ERRORS) as error:
        raise IndexUnavailable(f"the index server failed: {error}") from error


def _point(entry: Entry) -> models.PointStruct:
    vector: dict[str, Any] = {
        "text": models.SparseVector(indices=list(entry.text), values=list(entry.text.values())),
        "context": models.SparseVector(indices=list(entry.context), values=list(entry.context.values())),
    }
    if entry.dense is not None:
        vector["dense"] = list(map(float, entry.dense))
    return models.PointStruct(
        id=entry.number, vector=vector, payload={"tags": sorted(entry.tags), "digest": entry.digest}
    )


def _filter(groups: Sequence[frozenset[str]], numbers: Sequence[int] | None = None) -> models.Filter:
    must: list[Any] = [models.FieldCondition(key="tags", match=models.MatchAny(any=sorted(group))) for group in groups]
    if numbers is not None:
        must.append(models.HasIdCondition(has_id=list(numbers)))
    return models.Filter(must=must)


def _requests(
    probe: Probe, place: Within, where: models.Filter, count_max: int
) -> tuple[list[str], list[models.QueryRequest]]:
    names: list[str] = []
    requests: list[models.QueryRequest] = []
    if probe.terms:
        sparse = models.SparseVector(indices=list(probe.terms), values=list(probe.terms.values()))
        idf = models.SearchParams(idf=models.IdfCorpusParams(corpus=_filter(place.corpus or place.groups)))
        for arm in ("text", "context"):
            names.append(arm)
            requests.append(models.QueryRequest(query=sparse, using=arm, filter=where, limit=count_max, params=idf))
    if probe.dense is not None:
        names.append("dense")
        vector = list(map(float, probe.dense))
        requests.append(models.QueryRequest(query=vector, using="dense", filter=where, limit=count_max))
    return names, requests
