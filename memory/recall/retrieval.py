"""How a question is answered: the index proposes, the database disposes, the recipe ranks."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from uuid import uuid4

from threadmark.memory.embedders.embedder import Embedder, KnowsRelatedWords, checked
from threadmark.memory.errors import EmbedderFailed, IndexUnavailable
from threadmark.memory.index.index import Arms, Index, Probe, within
from threadmark.memory.index.indexer import Indexer
from threadmark.memory.model.question import Answer, Answers, Question, Withheld
from threadmark.memory.model.scope import Namespace
from threadmark.memory.pools import QUESTIONS
from threadmark.memory.recall.candidates import Ground, Unindexed, ground, newest, proposed
from threadmark.memory.recall.post_filter import AdmissibilityFilter, Held
from threadmark.memory.recall.query_features import query_features
from threadmark.memory.recall.ranking import Candidate, Ranked, rank
from threadmark.memory.recall.recipe import CURRENT, Recipe, weighed_for
from threadmark.memory.recall.unindexed import scores
from threadmark.memory.store.assertion_queries import by_ids, words_of
from threadmark.memory.store.database import Database
from threadmark.memory.store.spaces import Space
from threadmark.memory.text.bm25 import dimension
from threadmark.memory.text.terms import terms

__all__ = ["Answering", "estimated_tokens", "fitting"]

#: How often the list is refilled when what was proposed was withheld, each time from four times as many.
REFILL_COUNT_MAX, REFILL_FACTOR = 3, 4
BYTES_PER_TOKEN = 4


class _Proposals:
    """What one round brought: scores by arm, rows by number, numbers that the database does not have."""

    def __init__(self) -> None:
        self.arms: Arms = {"text": {}, "context": {}, "dense": {}}
        self.rows: dict[int, Held] = {}
        self.gone_count = 0
        self.is_full = False  #: an arm had more to propose
        self.index_answered = False


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
        ranked, withheld, index_answered = await self._ranked(question)
        ids = [each.assertion_id for each in ranked]
        known = await self._database.read(partial(by_ids, tenant_id=question.scope.tenant_id, ids=ids))
        best = [each for each in ranked if each.assertion_id in known]
        withheld[Withheld.ERASED] += len(ranked) - len(best)
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

    async def _ranked(self, question: Question) -> tuple[list[Ranked], Counter[Withheld], bool]:
        asked = terms(question.text)
        count_max = max(self._recipe.proposals, question.count_max)
        probe: Probe | None = None
        for _ in range(REFILL_COUNT_MAX + 1):
            start = await self._database.read(partial(ground, scope=question.scope))
            probe = probe or await self._probe(question, asked, start.space)
            found = await self._proposed(question, probe, start, asked, count_max)
            kept, withheld = _disposed(question, found, start.namespaces)
            if len(kept) >= question.count_max or not found.is_full:
                break
            count_max *= REFILL_FACTOR
        named = query_features(question, (row.speaker for row in kept if row.speaker is not None))
        candidates = [_candidate(row, found.arms) for row in kept]
        return rank(candidates, named, self._recipe, question.count_max), withheld, found.index_answered

    async def _proposed(
        self, question: Question, probe: Probe, start: Ground, asked: Sequence[str], count_max: int
    ) -> _Proposals:
        found = _Proposals()
        tail = start.tail
        try:
            await self._from_index(question, probe, start.space, count_max, found)
        except IndexUnavailable:
            tail = await self._database.read(partial(newest, scope=question.scope))
        await self._from_tail(asked, tail, found)
        return found

    async def _from_index(
        self, question: Question, probe: Probe, space: Space | None, count_max: int, found: _Proposals
    ) -> None:
        if space is None:
            raise IndexUnavailable("no space serves")
        place = within(question)
        near = await self._index.near(space.name, probe, place, count_max)
        numbers = {each for arm in near.values() for each in arm}
        tops = {each for arm in near.values() for each in list(arm)[: self._recipe.neighbours_of]}
        rows = await self._database.read(
            partial(proposed, tenant_id=question.scope.tenant_id, numbers=numbers, tops=tops)
        )
        # Every candidate gets every arm's score: one that only the words proposed has a likeness too.
        found.arms |= await self._index.score(space.name, probe, place, [*rows])
        found.rows = rows
        found.gone_count = len(numbers - rows.keys())
        found.is_full = any(len(arm) >= count_max for arm in near.values())
        found.index_answered = True

    async def _probe(self, question: Question, asked: Sequence[str], space: Space | None) -> Probe:
        words: dict[int, float] = {}
        if isinstance(self._embedder, KnowsRelatedWords):
            with suppress(EmbedderFailed):
                related = await self._embedder.related(question.text)
                words = {dimension(term): weight for term, weight in related.items()}
        probe = Probe(terms=words | dict.fromkeys((dimension(term) for term in asked), 1.0))
        if space is None or not self._indexer.can_embed(space):
            return probe
        try:
            raw = await self._embedder.embed([question.text], is_question=True)
            (vector,) = checked(raw, 1, self._embedder.dimension)
        except EmbedderFailed:
            return probe
        return replace(probe, dense=vector)

    async def _from_tail(self, asked: Sequence[str], tail: Sequence[Unindexed], found: _Proposals) -> None:
        """Add what no index has, on the scale of what it has."""
        if not tail:
            return
        fresh = {each.row.number: (each.own, each.both) for each in tail if each.row.number not in found.arms["text"]}
        indexed = [found.rows[each] for each in found.arms["text"] if each in found.rows]
        words = await self._words(indexed)
        scored_arms = await QUESTIONS.run(partial(scores, asked, fresh, words, found.arms))
        for arm, scored in scored_arms.items():
            found.arms[arm].update(scored)
        found.rows.update((each.row.number, each.row) for each in tail)

    async def _words(self, rows: Sequence[Held]) -> dict[int, tuple[list[str], list[str]]]:
        wanted = {row.assertion_id for row in rows} | {row.previous_id for row in rows if row.previous_id is not None}
        words = await self._database.read(partial(words_of, ids=sorted(wanted)))
        own = {row.number: words.get(row.assertion_id, []) for row in rows}
        return {
            row.number: (own[row.number], [*words.get(row.previous_id or "", []), *own[row.number]]) for row in rows
        }


def estimated_tokens(text: str) -> int:
    """About how many tokens a text is, erring on the high side; for callers without an exact counter."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN) + 1


def fitting(texts: Sequence[str], token_count_max: int | None, count_tokens: Callable[[str], int]) -> list[int]:
    """The places of the texts that fit together, taken in order; a long one makes room for shorter ones after it."""
    if token_count_max is None:
        return list(range(len(texts)))
    left = token_count_max
    chosen: list[int] = []
    for at, text in enumerate(texts):
        cost = count_tokens(text)
        if cost <= left:
            chosen.append(at)
            left -= cost
    return chosen


def _disposed(
    question: Question, found: _Proposals, namespaces: Mapping[int, Namespace]
) -> tuple[list[Held], Counter[Withheld]]:
    """The rows that may answer, and the others counted."""
    withheld: Counter[Withheld] = Counter()
    withheld[Withheld.ERASED] += found.gone_count
    scored = {each for arm in found.arms.values() for each in arm}
    admissible = AdmissibilityFilter.of(question)
    kept: list[Held] = []
    for number, row in found.rows.items():
        if number not in scored:
            continue
        namespace = namespaces.get(row.namespace_id)
        reason = Withheld.OUT_OF_SCOPE if namespace is None else admissible.check(row, namespace)
        if reason is None:
            kept.append(row)
        else:
            withheld[reason] += 1
    return kept, withheld


def _candidate(row: Held, arms: Arms) -> Candidate:
    number = row.number
    return Candidate(
        row.assertion_id,
        number,
        row.observed_at,
        row.speaker,
        row.session,
        row.previous_id,
        row.says_when,
        {arm: found[number] for arm, found in arms.items() if number in found},
    )
