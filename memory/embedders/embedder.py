"""The port of an embedder, the name of a vector space, and the check that no broken vector is stored."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from threadmark.memory.errors import EmbedderFailed
from threadmark.memory.text.terms import TOKENIZER

__all__ = ["Embedder", "KnowsRelatedWords", "Vectors", "checked", "space_name"]

Vectors = NDArray[np.float32]
NORM_MIN = 1e-6


class Embedder(Protocol):
    """Turns texts into vectors. `name` names the model and its weights; another name is another space."""

    @property
    def name(self) -> str:
        """Lower-case letters, digits, dots and hyphens."""
        ...

    @property
    def dimension(self) -> int:
        """The length of its vectors."""
        ...

    async def embed(self, texts: Sequence[str], *, is_question: bool = False) -> Any:
        """One vector a text, in their order. Raises EmbedderFailed when it cannot."""
        ...


@runtime_checkable
class KnowsRelatedWords(Protocol):
    """An embedder that can also say which words are near to those of a question."""

    async def related(self, question: str) -> Mapping[str, float]:
        """Terms that the question does not have, each with a weight below that of a word of its own (1)."""
        ...


def space_name(embedder: Embedder) -> str:
    """The vector space that an embedder's vectors live in."""
    return f"{embedder.name}-{embedder.dimension}-{TOKENIZER}"


def checked(vectors: Any, count: int, dimension: int) -> list[Vectors | None]:
    """Unit vectors; None in the place of one that is zero, not finite or of the wrong length.

    A zero vector is near nothing and a NaN is near everything: neither may reach an index. Raises EmbedderFailed when
    there are not `count` of them.
    """
    if len(vectors) != count:
        raise EmbedderFailed(f"the embedder gave {len(vectors)} vectors for {count} texts")
    return [_unit(vector, dimension) for vector in vectors]


def _unit(vector: Any, dimension: int) -> Vectors | None:
    try:
        array = np.asarray(vector, np.float32)
    except (TypeError, ValueError):
        return None
    if array.shape != (dimension,) or not np.isfinite(array).all():
        return None
    norm = float(np.linalg.norm(array))
    return array / np.float32(norm) if norm > NORM_MIN else None
