"""An embedder that its first use loads: a process that never recalls does not pay for it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from threadmark.memory.embedders.embedder import Embedder, KnowsRelatedWords
from threadmark.memory.pools import UPKEEP

__all__ = ["LazyEmbedder"]


class LazyEmbedder:
    """The embedder that `load` makes, in a thread; until it can be made, every use raises EmbedderFailed."""

    def __init__(self, name: str, dimension: int, load: Callable[[], Embedder]) -> None:
        self.name = name
        self.dimension = dimension
        self._load = load
        self._loaded: Embedder | None = None
        self._lock = asyncio.Lock()

    async def embed(self, texts: Sequence[str], *, is_question: bool = False) -> Any:
        """One vector a text."""
        return await (await self._embedder()).embed(texts, is_question=is_question)

    async def related(self, question: str) -> Mapping[str, float]:
        """Terms near to those of the question; none where the embedder knows of none."""
        embedder = await self._embedder()
        return await embedder.related(question) if isinstance(embedder, KnowsRelatedWords) else {}

    async def _embedder(self) -> Embedder:
        async with self._lock:
            if self._loaded is None:
                self._loaded = await UPKEEP.run(self._load)
            return self._loaded
