"""Ranking: scaled scores of the arms, lifted by neighbours, speaker, date and conversation. Pure and deterministic.

Scores are fused, not ranks: reciprocal rank fusion with a small embedder ranks worse than BM25 alone.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memory.recipe import Recipe

__all__ = ["ARMS", "Candidate", "Cues", "Ranked", "rank"]

#: The arms of an index, in the order of their explanation.
ARMS = ("text", "context", "dense")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cues:
    """What a question says about its answer beside its words."""

    speakers: frozenset[str] = frozenset()  #: folded names of speakers that occur in it
    window: tuple[datetime, datetime] | None = None
    asks_when: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What ranking knows of an assertion."""

    assertion_id: str
    number: int  #: order of arrival; the later one wins a tie
    observed_at: datetime
    speaker: str | None = None
    session: str | None = None
    previous: str | None = None  #: the turn before it
    says_when: bool = False
    scores: Mapping[str, float] = field(default_factory=dict)  #: by arm


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """An assertion's place: its score and each signal's part of it; the parts add up to the score."""

    assertion_id: str
    score: float
    because: Mapping[str, float]


def rank(candidates: Sequence[Candidate], cues: Cues, recipe: Recipe) -> list[Ranked]:
    """The candidates, best first."""
    if not candidates:
        return []
    parts: list[dict[str, float]] = [{} for _ in candidates]
    for arm, weight in zip(ARMS, (recipe.text, recipe.context, recipe.dense or 0.0), strict=True):
        _add(parts, arm, weight, _scaled(arm, candidates))
    base = [sum(part.values()) for part in parts]
    _add(parts, "neighbours", recipe.neighbour, _borrowed(candidates, base))
    totals = [sum(part.values()) for part in parts]
    spread = max(totals) - min(totals)
    named = _named(candidates, cues)
    _add(
        parts,
        "speaker",
        recipe.speaker * spread,
        [float(each.speaker == named) if named else 0.0 for each in candidates],
    )
    _add(parts, "date", recipe.date * spread, [float(_inside(each, cues)) for each in candidates])
    _add(
        parts,
        "time_words",
        recipe.time_words * spread,
        [float(cues.asks_when and each.says_when) for each in candidates],
    )
    totals = [sum(part.values()) for part in parts]
    _add(parts, "conversation", recipe.session, _conversation(candidates, totals, recipe.session_best_count))
    ranked = [
        Ranked(assertion_id=each.assertion_id, score=sum(part.values()), because=part)
        for each, part in zip(candidates, parts, strict=True)
    ]
    order = sorted(range(len(ranked)), key=lambda at: (-ranked[at].score, -candidates[at].number))
    return [ranked[at] for at in order]


def _add(parts: list[dict[str, float]], name: str, weight: float, values: Sequence[float]) -> None:
    for part, value in zip(parts, values, strict=True):
        if value and weight:
            part[name] = weight * value


def _scaled(arm: str, candidates: Sequence[Candidate]) -> list[float]:
    """To 0..1 among the candidates. Zero is a lexical floor (no shared term); a similarity has none of its own."""
    known = [each.scores[arm] for each in candidates if arm in each.scores]
    high = max(known, default=0.0)
    low = min(known, default=0.0) if arm == "dense" else 0.0
    if high <= low:
        return [0.0] * len(candidates)
    return [max(0.0, (each.scores.get(arm, low) - low) / (high - low)) for each in candidates]


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


def _named(candidates: Sequence[Candidate], cues: Cues) -> str | None:
    """The one speaker whom the question names; naming two tells nothing."""
    named = {each.speaker for each in candidates if each.speaker in cues.speakers}
    return named.pop() if len(named) == 1 else None


def _inside(candidate: Candidate, cues: Cues) -> bool:
    return cues.window is not None and cues.window[0] <= candidate.observed_at < cues.window[1]


def _conversation(candidates: Sequence[Candidate], totals: Sequence[float], best_count: int) -> list[float]:
    by_session: dict[str, list[float]] = defaultdict(list)
    for each, total in zip(candidates, totals, strict=True):
        if each.session is not None:
            by_session[each.session].append(total)
    means = {
        session: sum(best := sorted(values, reverse=True)[:best_count]) / len(best)
        for session, values in by_session.items()
    }
    return [means[each.session] if each.session is not None else 0.0 for each in candidates]
