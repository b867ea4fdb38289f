"""Embeddings from any endpoint that speaks OpenAI's `/embeddings`."""

import re
from collections.abc import Sequence

from openai import AsyncOpenAI, OpenAIError

from threadmark.memory.errors import EmbedderFailed

__all__ = ["OpenAiEmbedder"]

BATCH_COUNT_MAX = 128


class OpenAiEmbedder:
    """One model of one endpoint; its owner configured the client (address, key, time-out, retries)."""

    def __init__(self, client: AsyncOpenAI, *, model: str, dimension: int) -> None:
        self._client = client
        self._model = model
        self.dimension = dimension
        self.name = "openai-" + re.sub(r"[^a-z0-9.]+", "-", model.casefold()).strip("-.")

    async def embed(self, texts: Sequence[str], *, is_question: bool = False) -> list[list[float]]:
        """One vector a text. Raises EmbedderFailed for whatever the endpoint answers instead."""
        vectors: list[list[float]] = []
        for at in range(0, len(texts), BATCH_COUNT_MAX):
            vectors.extend(await self._batch(list(texts[at : at + BATCH_COUNT_MAX])))
        return vectors

    async def _batch(self, texts: list[str]) -> list[list[float]]:
        try:
            reply = await self._client.embeddings.create(model=self._model, input=texts, encoding_format="float")
        except OpenAIError as error:
            raise EmbedderFailed(f"the embedding endpoint failed: {type(error).__name__}") from error
        by_index = {each.index: each.embedding for each in reply.data}
        if sorted(by_index) != list(range(len(texts))):
            raise EmbedderFailed(f"the embedding endpoint gave {len(by_index)} vectors for {len(texts)} texts")
        return [by_index[at] for at in range(len(texts))]
