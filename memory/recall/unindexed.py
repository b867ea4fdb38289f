"""Scores for rows that no index has yet, on the scale of those that it has. Pure."""

from collections.abc import Mapping, Sequence

from threadmark.memory.text.bm25 import CONTEXT_LENGTH, TEXT_LENGTH, dimension, idf, score, weights

__all__ = ["Words", "scores"]

#: The terms of a row, and the terms of the turn before it followed by its own.
Words = tuple[Sequence[str], Sequence[str]]
_LENGTHS = {"text": TEXT_LENGTH, "context": CONTEXT_LENGTH}


def scores(
    question: Sequence[str],
    tail: Mapping[int, Words],
    indexed: Mapping[int, Words],
    known: Mapping[str, Mapping[int, float]],
) -> dict[str, dict[int, float]]:
    """By arm, the scores of the tail.

    Rarity is counted over the tail and the indexed candidates (`known`: their scores by arm), which makes every term
    look more common than it is; comparing both scores of the indexed ones gives the factor between the two scales.
    """
    asked = sorted({dimension(term) for term in question})
    return {arm: _arm(at, arm, asked, tail, indexed, known.get(arm, {})) for at, arm in enumerate(_LENGTHS)}


def _arm(
    at: int,
    arm: str,
    asked: Sequence[int],
    tail: Mapping[int, Words],
    indexed: Mapping[int, Words],
    known: Mapping[int, float],
) -> dict[int, float]:
    texts = {each: weights(words[at], _LENGTHS[arm]) for each, words in {**indexed, **tail}.items()}
    rare = {term: idf(len(texts), sum(term in text for text in texts.values())) for term in asked}
    own = {each: score(asked, text, rare) for each, text in texts.items()}
    theirs = sum(known[each] for each in indexed if each in known)
    ours = sum(own[each] for each in indexed if each in known)
    factor = theirs / ours if theirs > 0 and ours > 0 else 1.0
    return {each: own[each] * factor for each in tail if own[each] > 0}
