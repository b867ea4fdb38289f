"""Words that mean nearly the same, out of the table of word pieces: what a question may be answered in."""

import re
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from threadmark.memory.text.terms import terms

__all__ = ["Related"]

#: Measured on five conversations: many words, each lightly, gain most.
RELATED_COUNT_MAX, LIKENESS_MIN, WEIGHT = 10, 0.4, 0.2
WORD_LENGTH_MIN = 4
_WORD_START = "\u2581"
_WORD = re.compile(r"[^\W\d_]+")


class Related:
    """The whole words of a vocabulary, with their vectors."""

    def __init__(self, vocabulary: Mapping[str, int], table: NDArray[np.float32]) -> None:
        known = {
            piece[1:]: at
            for piece, at in vocabulary.items()
            if piece.startswith(_WORD_START)
            and piece[1:].isalpha()
            and piece[1:].islower()
            and len(piece) > WORD_LENGTH_MIN
        }
        self._places = {word: place for place, word in enumerate(known)}
        self._terms = [terms(word) for word in known]
        vectors = table[list(known.values())]
        self._vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-6))
        self._near = lru_cache(maxsize=4_096)(self._uncached)

    def to(self, question: str) -> dict[str, float]:
        """Terms that the question does not have and its answer may, each with its weight (a word of its own has 1).

        Names have no related terms: a similar name is another person.
        """
        asked = set(terms(question))
        found: dict[str, float] = {}
        for at, word in enumerate(_WORD.findall(question)):
            if word.casefold() not in self._places or (at > 0 and not word.islower()) or not terms(word):
                continue
            new = [(term, weight) for term, weight in self._near(word.casefold()) if term not in asked]
            for term, weight in new[:RELATED_COUNT_MAX]:
                found[term] = max(weight, found.get(term, 0.0))
        return found

    def _uncached(self, word: str) -> tuple[tuple[str, float], ...]:
        likeness = self._vectors @ self._vectors[self._places[word]]
        best = np.argsort(-likeness)[: 3 * RELATED_COUNT_MAX]
        near: dict[str, float] = {}
        for at in best.tolist():
            if likeness[at] >= LIKENESS_MIN:
                for term in self._terms[at]:
                    near.setdefault(term, WEIGHT * float(likeness[at]))
        return tuple(near.items())
