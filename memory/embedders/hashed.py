"""An embedder of nothing but arithmetic: signed hashes of terms and their pieces. For tests, and as a last resort."""

import math
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from threadmark.memory.text.terms import terms

__all__ = ["HashedEmbedder"]

PIECE_LENGTHS = (3, 4, 5)


class HashedEmbedder:
    """Texts that share terms, or long pieces of them, lie near to each other; it knows no synonyms."""

    def __init__(self, dimension: int = 256) -> None:
        self.dimension = dimension

    @property
    def name(self) -> str:
        """The name of its kind."""
        return "hashed-1"

    async def embed(self, texts: Sequence[str], *, is_question: bool = False) -> NDArray[np.float32]:
        """One vector a text."""
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for piece, count in Counter(_pieces(text)).items():
                hashed = zlib.crc32(piece.encode())
                row[hashed % self.dimension] += math.copysign(math.log1p(count), (hashed >> 31) - 0.5)
        return vectors


def _pieces(text: str) -> Iterator[str]:
    for term in terms(text) or [text]:
        yield term
        framed = f"<{term}>"
        for length in PIECE_LENGTHS:
            yield from (framed[at : at + length] for at in range(len(framed) - length + 1))
