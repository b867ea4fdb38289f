"""recall_dropped: search over what compactions dropped, answered with the original words and their neighbours."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice, pairwise
from math import log

import msgspec

from threadmark.compaction.content_words import content_words
from threadmark.compaction.drops.retrieval import Candidate, answer_scores
from threadmark.compaction.input.analysis import analyse_text
from threadmark.compaction.input.source import Position, Role, SourceEntry, Trust
from threadmark.compaction.ledger import Row, RowKey, Source, Status, UnitKind
from threadmark.compaction.ledger.rows import row_id_of
from threadmark.compaction.summary.drafts import TokenCounter, estimate_tokens
from threadmark.db.execution.pools import check_wanted

__all__ = ["DropQuery", "Recalled", "recall_dropped"]

LIMIT_MAX = 100
NEIGHBOUR_CHARACTERS = 120
#: So much of the message before: it may be the question that this one answers.
EARLIER_CHARACTERS = 240
#: A text longer than this has values of every kind: that it holds one tells nothing.
HOLDER_CHARACTERS = 300
#: At least what a unit scores that is asked for by its value, or by words that it has in this order.
EXACT_MIN = 100.0
_GONE = frozenset({Status.DROPPED, Status.ALTERED, Status.PROMOTED, Status.PARAPHRASED})


class DropQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for. Without `text`, everything that passes the filters, in the order of the thread."""

    text: str = ""
    classes: Collection[str] = ()
    statuses: Collection[Status] = _GONE
    from_seq: int | None = None
    to_seq: int | None = None
    limit: int = 5
    budget_tokens: int = 800
    #: The text is a question in words that the answer need not have: ranked by what speaks for an answer, and each
    #: message answers once before another of its units does.
    as_question: bool = False


class Recalled(msgspec.Struct, frozen=True, kw_only=True):
    """One answer: the span as it stands in the entry, with what stands before and after it."""

    row_id: str
    unit: str
    cls: str
    status: Status
    text: str
    before: str
    after: str
    source: Source
    role: Role
    trust: Trust
    occurrence_count: int
    score: float


def recall_dropped(
    rows: Iterable[Row],
    entries: Mapping[Position, SourceEntry],
    query: DropQuery,
    count: TokenCounter = estimate_tokens,
) -> list[Recalled]:
    """The best answers within limit and budget: equal values first, then by shared words, then by salience.

    The words come from the original entries; a row whose entry is erased has none and is no answer.
    """
    chosen = [row for row in rows if _passes(row, query)]
    scores = _scores(chosen, entries, query.text)
    if query.as_question and query.text:
        scores = _with_meaning(chosen, entries, query.text, scores)
    ranked = sorted(
        (row for row in chosen if not query.text or scores[row.row_id] > 0),
        key=lambda row: (-scores[row.row_id], -row.salience, row.sources[0]),
    )
    if query.as_question:
        ranked = _spread(ranked, scores)
    answers: list[Recalled] = []
    left = query.budget_tokens
    for row in ranked:
        answer = _answer(row, entries, scores[row.row_id])
        if answer is None:
            continue
        cost = count(answer.before + answer.text + answer.after) + 1
        if len(answers) >= min(query.limit, LIMIT_MAX):
            break
        if cost <= left:
            answers.append(answer)
            left -= cost
    return answers


def _passes(row: Row, query: DropQuery) -> bool:
    if row.status not in query.statuses or not row.sources:
        return False
    if query.classes and row.cls not in query.classes:
        return False
    return any(
        (query.from_seq is None or query.from_seq <= source.seq)
        and (query.to_seq is None or source.seq <= query.to_seq)
        for source in row.sources
    )


def _scores(rows: Sequence[Row], entries: Mapping[Position, SourceEntry], text: str) -> dict[str, float]:
    """A value that the question names counts more than any number of words; rare words count more than common ones."""
    if not text:
        return {row.row_id: 0.0 for row in rows}
    words = content_words(text)
    asked = {(atom.cls, atom.canon) for atom in analyse_text(text).atoms}
    names = {row_id_of(RowKey(UnitKind.ATOM, *each)) for each in asked}
    texts = [content_words(_around(row, entries)) for row in rows]
    idf = Counter(word for each in texts for word in each & words)
    scores: dict[str, float] = {}
    plain = text.strip().casefold()
    for row, around in zip(rows, texts, strict=True):
        score = sum(log(1 + len(rows) / idf[word]) for word in around & words)
        surface = row.text or _span(row, entries)
        own = content_words(surface)
        score += sum(log(1 + len(rows) / idf[word]) for word in own & words)
        if (row.cls, row.canon) in asked or row.named in names or plain in (surface.casefold(), row.canon):
            score += 1_000.0
        elif plain in surface.casefold():
            score += 100.0
        scores[row.row_id] = score
    return scores


def _with_meaning(
    rows: Sequence[Row], entries: Mapping[Position, SourceEntry], question: str, by_words: Mapping[str, float]
) -> dict[str, float]:
    """The scores of a question: what was named exactly stays before everything that is only likely."""
    candidates = _candidates(rows, entries)
    likely = answer_scores(candidates, question)
    return {
        row_id: score if score >= EXACT_MIN else min(likely.get(row_id, 0.0), EXACT_MIN - 1)
        for row_id, score in by_words.items()
    }


def _candidates(rows: Sequence[Row], entries: Mapping[Position, SourceEntry]) -> list[Candidate]:
    earlier = dict(pairwise(sorted(entries, reverse=True)))
    placed = [(row, answer) for row in rows if (answer := _answer(row, entries, 0.0)) is not None]
    classes = _classes([answer for _, answer in placed])
    candidates: list[Candidate] = []
    for row, answer in placed:
        last = earlier.get(Position(answer.source.seq, answer.source.message))
        candidates.append(
            Candidate(
                row_id=row.row_id,
                role=answer.role,
                text=answer.text,
                around=f"{answer.before} {answer.text} {answer.after}",
                before="" if last is None or entries[last].erased else entries[last].text()[-EARLIER_CHARACTERS:],
                cls=row.cls,
                classes=classes[row.row_id],
            )
        )
    return candidates


def _classes(found: Iterable[Recalled]) -> dict[str, frozenset[str]]:
    """By row: its class, the classes of what it holds, and of what holds it. A long text holds nothing."""
    by_text: dict[tuple[int, int, int], list[Recalled]] = {}
    classes: dict[str, set[str]] = {}
    for each in found:
        classes[each.row_id] = {each.cls}
        if each.source.end - each.source.start <= HOLDER_CHARACTERS:
            by_text.setdefault((each.source.seq, each.source.message, each.source.part), []).append(each)
    for units in by_text.values():
        units.sort(key=lambda each: (each.source.start, -each.source.end))
        for at, outer in enumerate(units):
            # What is held begins before its holder ends: the rest of a text of thousands of values is not looked at.
            for inner in islice(units, at + 1, None):
                if inner.source.start >= outer.source.end:
                    break
                if inner.source.end <= outer.source.end:
                    classes[outer.row_id].add(inner.cls)
                    classes[inner.row_id].add(outer.cls)
    return {row_id: frozenset(each) for row_id, each in classes.items()}


def _message(source: Source) -> tuple[int, int]:
    return source.seq, source.message


def _spread(ranked: Sequence[Row], scores: Mapping[str, float]) -> list[Row]:
    """The same rows: what is exact, then the best of each message, then the rest."""
    seen: set[tuple[int, int]] = set()
    exact: list[Row] = []
    best: list[Row] = []
    rest: list[Row] = []
    for row in ranked:
        place = _message(row.sources[0])
        if scores[row.row_id] >= EXACT_MIN:
            exact.append(row)
        else:
            (rest if place in seen else best).append(row)
        seen.add(place)
    return [*exact, *best, *rest]


def _span(row: Row, entries: Mapping[Position, SourceEntry]) -> str:
    """The words of a row that keeps only their digest, as the journal has them."""
    answer = _answer(row, entries, 0.0)
    return "" if answer is None else answer.text


def _around(row: Row, entries: Mapping[Position, SourceEntry]) -> str:
    answer = _answer(row, entries, 0.0)
    return "" if answer is None else f"{answer.before} {answer.text} {answer.after}"


def _answer(row: Row, entries: Mapping[Position, SourceEntry], score: float) -> Recalled | None:
    check_wanted()
    for source in row.sources:
        entry = entries.get(Position(source.seq, source.message))
        if entry is None or entry.erased:
            continue
        text = entry.text() if row.unit == "message" else entry.text_of(source.part)
        return Recalled(
            row_id=row.row_id,
            unit=row.unit,
            cls=row.cls,
            status=row.status,
            text=text[source.start : source.end],
            before=text[max(0, source.start - NEIGHBOUR_CHARACTERS) : source.start],
            after=text[source.end : source.end + NEIGHBOUR_CHARACTERS],
            source=source,
            role=entry.role,
            trust=entry.trusted,
            occurrence_count=len(row.sources),
            score=round(score, 3),
        )
    return None
