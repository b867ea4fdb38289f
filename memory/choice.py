"""Indexes and embedders by the settings of a deployment, ready to use and not yet loaded."""

from pathlib import Path

from openai import AsyncOpenAI
from sqlalchemy import make_url

from threadmark.db import DEFAULT_LIMITS, Limits
from threadmark.memory.embedders import MiniLmEmbedder, OpenAiEmbedder, WordLlamaEmbedder, minilm, wordllama
from threadmark.memory.embedders.embedder import Embedder
from threadmark.memory.embedders.lazy import LazyEmbedder
from threadmark.memory.index.claimed_index import ClaimedIndex
from threadmark.memory.index.index import Index
from threadmark.memory.index.index_claim import FileClaim, SessionClaim

__all__ = ["choose_embedder", "owned_index", "server_index"]

SERVER_TIMEOUT_S = 10
ENDPOINT_TIMEOUT_S = 30.0
ENDPOINT_RETRY_COUNT_MAX = 2


def owned_index(index: Index, database_url: str, limits: Limits = DEFAULT_LIMITS) -> ClaimedIndex:
    """`index` for the one process over the memory database that gets the claim to it."""
    url = make_url(database_url)
    if url.get_backend_name() == "sqlite":
        return ClaimedIndex(index, FileClaim(Path(f"{url.database}.index-owner")))
    return ClaimedIndex(index, SessionClaim(database_url, limits))


def server_index(url: str, api_key: str | None) -> Index:
    """The index on the Qdrant server at `url`."""
    # Its client takes a second to import: only deployments with a server pay for it.
    from qdrant_client import AsyncQdrantClient  # noqa: PLC0415

    from threadmark.memory.index.server_index import ServerIndex  # noqa: PLC0415

    client = AsyncQdrantClient(url=url, api_key=api_key, timeout=SERVER_TIMEOUT_S, check_compatibility=False)
    return ServerIndex(client)


def choose_embedder(kind: str, *, api_key: str | None, base_url: str | None) -> Embedder:
    """`wordllama`, `minilm`, or `openai:<model>:<dimension>` of an endpoint. Nothing is loaded or called yet.

    Raises EmbedderMissing for `minilm` without the extra of that name.
    """
    if kind == "wordllama":
        return LazyEmbedder(WordLlamaEmbedder.name, wordllama.DIMENSION, WordLlamaEmbedder)
    if kind == "minilm":
        minilm.check_installed()
        return LazyEmbedder(MiniLmEmbedder.name, minilm.DIMENSION, MiniLmEmbedder)
    _, _, rest = kind.partition(":")
    model, _, dimension = rest.rpartition(":")
    client = AsyncOpenAI(
        api_key=api_key or "no-key-needed",
        base_url=base_url,
        timeout=ENDPOINT_TIMEOUT_S,
        max_retries=ENDPOINT_RETRY_COUNT_MAX,
    )
    return OpenAiEmbedder(client, model=model, dimension=int(dimension))
