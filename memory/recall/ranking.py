"""Ranking: scaled scores of the arms, lifted by neighbours, speaker, date and conversation. Pure and deterministic.

Scores are fused, not ranks: reciprocal rank fusion with a small embedder ranks worse than BM25 alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from threadmark.memory.model.instants import to_us
from threadmark.memory.recall.recipe import Recipe

__all__ = ["ARMS", "Candidate", "QueryFeatures", "Ranked", "rank"]

#: The arms of an index, in the order of their explanation.
ARMS = ("text", "context", "dense")
Signals = dict[str, list[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFeatures:
    """What a question says about its answer beside its words."""

    speakers: frozenset[str] = frozenset()  #: folded names of speakers that occur in it
    window: tuple[datetime, datetime] | None = None
    asks_when: bool = False


class Candidate(NamedTuple):
    """What ranking knows of an assertion."""

    assertion_id: str
    number: int  #: order of arrival; the later one wins a tie
    observed_at: int  #: microseconds
    speaker: str | None
    session: str | None
    previous: str | None  #: the turn before it
    says_when: bool
    scores: Mapping[str, float]  #: by arm


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """An assertion's place: its score and each signal's part of it; the parts add up to the score."""

    assertion_id: str
    score: float
    because: Mapping[str, float]


def rank(
    candidates: Sequence[Candidate], query_features: QueryFeatures, recipe: Recipe, count_max: int
) -> list[Ranked]:
    """The best `count_max` candidates, best first."""
    if not candidates:
        return []
    signals: Signals = {
        arm: _weighed(weight or 0.0, _scaled(arm, candidates))
        for arm, weight in zip(ARMS, (recipe.text, recipe.context, recipe.dense), strict=True)
    }
    totals = _sums(signals.values())
    signals["neighbours"] = _weighed(recipe.neighbour, _borrowed(candidates, totals))
    totals = _sums([totals, signals["neighbours"]])
    lifts = _lifts(candidates, query_features, recipe, max(totals) - min(totals))
    signals |= lifts
    totals = _sums([totals, *lifts.values()])
    signals["conversation"] = _weighed(recipe.session, _conversation(candidates, totals, recipe.session_best_count))
    totals = _sums([totals, signals["conversation"]])
    order = sorted(range(len(candidates)), key=lambda at: (-totals[at], -candidates[at].number))
    return [
        Ranked(
            assertion_id=candidates[at].assertion_id,
            score=totals[at],
            because={name: values[at] for name, values in signals.items() if values[at]},
        )
        for at in order[:count_max]
    ]


def _sums(columns: Iterable[Sequence[float]]) -> list[float]:
    return [sum(values) for values in zip(*columns, strict=True)]


def _weighed(weight: float, values: Sequence[float]) -> list[float]:
    return [weight * value for value in values]


def _scaled(arm: str, candidates: Sequence[Candidate]) -> list[float]:
    """To 0..1 among the candidates. Zero is a lexical floor (no shared term); a similarity has none of its own."""
    found = [each.scores.get(arm) for each in candidates]
    known = [value for value in found if value is not None]
    high = max(known, default=0.0)
    low = min(known, default=0.0) if arm == "dense" else 0.0
    if high <= low:
        return [0.0] * len(found)
    scale = 1 / (high - low)
    return [0.0 if value is None or value < low else (value - low) * scale for value in found]


def _borrowed(candidates: Sequence[Candidate], base: Sequence[float]) -> list[float]:
    at = {each.assertion_id: index for index, each in enumerate(candidates)}
    around: list[float] = [0.0] * len(candidates)
    for index, each in enumerate(candidates):
        before = at.get(each.previous) if each.previous else None
        if before is None:
            continue
        around[index] = max(around[index], base[before])
        around[before] = max(around[before], base[index])
    return around


def _lifts(candidates: Sequence[Candidate], query_features: QueryFeatures, recipe: Recipe, spread: float) -> Signals:
    lifts: Signals = {}
    if (named := _named(candidates, query_features)) is not None:
        lifts["speaker"] = [recipe.speaker * spread if each.speaker == named else 0.0 for each in candidates]
    if query_features.window is not None:
        first, last = map(to_us, query_features.window)
        lifts["date"] = [recipe.date * spread if first <= each.observed_at < last else 0.0 for each in candidates]
    if query_features.asks_when:
        lifts["time_words"] = [recipe.time_words * spread if each.says_when else 0.0 for each in candidates]
    return lifts


def _named(candidates: Sequence[Candidate], query_features: QueryFeatures) -> str | None:
    """The one speaker whom the question names; naming two tells nothing."""
    named = {each.speaker for each in candidates if each.speaker in query_features.speakers}
    return named.pop() if len(named) == 1 else None


def _conversation(candidates: Sequence[Candidate], totals: Sequence[float], best_count: int) -> list[float]:
    by_session: dict[str, list[float]] = defaultdict(list)
    for each, total in zip(candidates, totals, strict=True):
        if each.session is not None:
            by_session[each.session].append(total)
    means: dict[str | None, float] = {
        session: sum(best := sorted(values, reverse=True)[:best_count]) / len(best)
        for session, values in by_session.items()
    }
    return [means.get(each.session, 0.0) for each in candidates]
