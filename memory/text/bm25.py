"""Term weights: BM25 with a fixed reference length, so that a text's weights never change when others arrive. Pure.

The rarity of a term is not in here: it is a property of the scope and is counted at the time of the question.
"""

import math
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["CONTEXT_LENGTH", "TEXT_LENGTH", "dimension", "idf", "weights"]

K1, B = 1.2, 0.75
#: Reference lengths, in terms: about those of a chat message with its date, and of two. Measured: a fixed one costs
#: nothing in recall beside the scope's own average.
TEXT_LENGTH, CONTEXT_LENGTH = 24.0, 48.0


def dimension(term: str) -> int:
    """The coordinate of a term in a sparse vector. Two terms in 30,000 share one; the database's words do not."""
    return zlib.crc32(term.encode())


def weights(terms: Sequence[str], reference_length: float) -> dict[int, float]:
    """The sparse vector of a text."""
    counts = Counter(map(dimension, terms))
    norm = K1 * (1 - B + B * len(terms) / reference_length)
    return {at: count * (K1 + 1) / (count + norm) for at, count in counts.items()}


def idf(population: int, holders: int) -> float:
    """The weight of a term that `holders` of `population` texts have."""
    return math.log(1 + (population - holders + 0.5) / (holders + 0.5))


def score(question: Iterable[int], text: Mapping[int, float], rarities: Mapping[int, float]) -> float:
    """The score of one text."""
    return sum(rarities.get(at, 0.0) * text[at] for at in question if at in text)
