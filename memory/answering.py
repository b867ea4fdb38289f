"""How a question is answered: the index proposes, the database disposes, the recipe ranks."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from uuid import uuid4

from memory.budget import fitting
from memory.cues import cues
from memory.database import Database
from memory.disposal import Held, verdict
from memory.embedder import Embedder, checked
from memory.errors import EmbedderFailed, IndexUnavailable
from memory.index import Arms, Index, Probe, within
from memory.indexer import Indexer
from memory.instants import from_us
from memory.lexical import dimension
from memory.proposals import Tail, newest, proposed, unindexed, words_of
from memory.ranking import Candidate, Ranked, rank
from memory.reading import by_ids
from memory.recall import Answer, Answers, Question, Withheld
from memory.recipe import CURRENT, Recipe, weighed_for
from memory.spaces import Space, live
from memory.tail import scores
from memory.text import terms

__all__ = ["Answering"]

#: How often the list is refilled when what was proposed was withheld, each time from four times as many.
REFILL_COUNT_MAX, REFILL_FACTOR = 3, 4


class Answering:
    """Answers questions over one database and one index."""

    def __init__(
        self,
        database: Database,
        index: Index,
        embedder: Embedder,
        indexer: Indexer,
        count_tokens: Callable[[str], int],
        recipe: Recipe = CURRENT,
    ) -> None:
        self._database = database
        self._index = index
        self._embedder = embedder
        self._indexer = indexer
        self._count_tokens = count_tokens
        self._recipe = weighed_for(recipe, embedder.name)

    async def answer(self, question: Question) -> Answers:
        """The answers, and what was withheld.

        An index or an embedder that fails costs signals, never the answer: the database alone then proposes its newest
        rows. Raises Unavailable when the database cannot be read.
        """
        asked = terms(question.text)
        ranked, withheld, index_answered = await self._ranked(question, asked)
        ids = [each.assertion_id for each in ranked[: question.count_max]]
        known = await self._database.read(lambda c: by_ids(c, question.scope.tenant_id, ids))
        best = [each for each in ranked[: question.count_max] if each.assertion_id in known]
        withheld[Withheld.ERASED] += min(len(ranked), question.count_max) - len(best)
        texts = [known[each.assertion_id].text for each in best]
        chosen = fitting(texts, question.token_count_max, self._count_tokens)
        withheld[Withheld.OVER_BUDGET] += len(best) - len(chosen)
        answers = tuple(
            Answer(assertion=known[each.assertion_id], score=each.score, because=each.because)
            for each in (best[at] for at in chosen)
        )
        return Answers(
            recall_id=str(uuid4()),
            question=question,
            answers=answers,
            withheld={reason: count for reason, count in sorted(withheld.items()) if count},
            recipe=self._recipe.version,
            index_answered=index_answered,
        )

    async def _ranked(self, question: Question, asked: Sequence[str]) -> tuple[list[Ranked], Counter[Withheld], bool]:
        count_max = max(self._recipe.proposals, question.count_max)
        for attempt in range(REFILL_COUNT_MAX + 1):
            try:
                arms, rows, full = await self._proposed(question, asked, count_max)
                index_answered = True
            except IndexUnavailable:
                arms, rows, full, index_answered = {}, {}, False, False
            tail = await self._database.read(lambda c: (unindexed if index_answered else newest)(c, question.scope))  # noqa: B023
            await self._score_tail(asked, tail, rows, arms)
            kept, withheld = _disposed(question, arms, rows)
            if len(kept) >= question.count_max or not full or attempt == REFILL_COUNT_MAX:
                break
            count_max *= REFILL_FACTOR
        named = cues(question, (row.speaker for row in kept if row.speaker is not None))
        return rank([_candidate(row, arms) for row in kept], named, self._recipe), withheld, index_answered

    async def _proposed(
        self, question: Question, asked: Sequence[str], count_max: int
    ) -> tuple[Arms, dict[str, Held], bool]:
        """Scores by arm, rows by id, and whether an arm had more to propose."""
        place = within(question)
        space = await self._serving()
        probe = await self._probe(question, asked, space)
        found = await self._index.near(space.name, probe, place, count_max)
        ids = {each for arm in found.values() for each in arm}
        tops = {each for arm in found.values() for each in list(arm)[: self._recipe.neighbours_of]}
        rows = await self._database.read(lambda c: proposed(c, question.scope.tenant_id, ids, tops))
        # Every candidate gets every arm's score: one that only the words proposed has a likeness too.
        arms = await self._index.score(space.name, probe, place, sorted(ids | rows.keys()))
        for arm in ("text", "context", "dense"):
            arms.setdefault(arm, {})
        arms["gone"] = dict.fromkeys(ids - rows.keys(), 0.0)
        return arms, rows, any(len(arm) >= count_max for arm in found.values())

    async def _probe(self, question: Question, asked: Sequence[str], space: Space) -> Probe:
        weights = Counter(dimension(term) for term in asked)
        probe = Probe(terms=dict.fromkeys(weights, 1.0))
        if not self._indexer.can_embed(space):
            return probe
        try:
            raw = await self._embedder.embed([question.text], is_question=True)
            (vector,) = checked(raw, 1, self._embedder.dimension)
        except EmbedderFailed:
            return probe
        return replace(probe, dense=vector)

    async def _serving(self) -> Space:
        spaces = await self._database.read(live)
        if not spaces:
            raise IndexUnavailable("no space serves")
        return spaces[0]

    async def _score_tail(self, asked: Sequence[str], tail: Sequence[Tail], rows: dict[str, Held], arms: Arms) -> None:
        if not tail:
            return
        fresh = {
            row.assertion_id: (own, both) for row, own, both in tail if row.assertion_id not in arms.get("text", {})
        }
        indexed = [each for each in arms.get("text", {}) if each in rows]
        words = await self._words(indexed, rows)
        known: Mapping[str, Mapping[str, float]] = arms
        for arm, found in scores(asked, fresh, words, known).items():
            arms.setdefault(arm, {}).update(found)
        rows.update((row.assertion_id, row) for row, _, _ in tail)

    async def _words(self, ids: Sequence[str], rows: Mapping[str, Held]) -> dict[str, tuple[list[str], list[str]]]:
        before = {each: rows[each].previous_id for each in ids}
        wanted = sorted({*ids, *(each for each in before.values() if each is not None)})
        own = await self._database.read(lambda c: words_of(c, wanted))
        return {each: (own.get(each, []), [*own.get(before[each] or "", []), *own.get(each, [])]) for each in ids}


def _disposed(question: Question, arms: Arms, rows: Mapping[str, Held]) -> tuple[list[Held], Counter[Withheld]]:
    """The rows that may answer, and the others counted. Only what an arm or a neighbour proposed is counted."""
    withheld: Counter[Withheld] = Counter()
    withheld[Withheld.ERASED] += len(arms.pop("gone", {}))
    scored = {each for arm in arms.values() for each in arm}
    kept: list[Held] = []
    for row in rows.values():
        reason = verdict(row, question)
        if reason is None:
            if row.assertion_id in scored:
                kept.append(row)
        elif row.assertion_id in scored:
            withheld[reason] += 1
    return kept, withheld


def _candidate(row: Held, arms: Arms) -> Candidate:
    return Candidate(
        assertion_id=row.assertion_id,
        number=row.number,
        observed_at=from_us(row.observed_at),
        speaker=row.speaker,
        session=row.session,
        previous=row.previous_id,
        says_when=row.says_when,
        scores={arm: found[row.assertion_id] for arm, found in arms.items() if row.assertion_id in found},
    )
