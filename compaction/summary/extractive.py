"""The extractive summary: sentences of the entries themselves, chosen by what they carry, in their order.

No model takes part. Each sentence is worth the weights of its clauses and atoms that no chosen sentence has yet, for
each token it costs; the best is taken until the budget is spent (a greedy weighted cover, evaluated lazily).
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from threadmark.compaction.clauses import clause_form
from threadmark.compaction.input.analysis import Analyses, TextAnalysis
from threadmark.compaction.input.source import Role, SourceEntry
from threadmark.compaction.ledger.weights import atom_weight, clause_weight
from threadmark.compaction.summary.drafts import Draft, Line, TokenCounter, estimate_tokens
from threadmark.compaction.view.stubs import escape_fences

__all__ = ["extractive_draft"]

SECTION = "Excerpts"
LINE_OVERHEAD_TOKENS = 8  #: bullet, pointer and role
STATEMENT_WEIGHT = 1.5  #: of any sentence of a person: it may bind in words that no list knows
STATEMENT_CHARACTERS_MIN = 12
SENTENCE_CHARACTERS_MAX = 320


@dataclass(frozen=True, slots=True)
class _Sentence:
    place: int  # of the entry in the range
    start: int
    text: str
    cost: int
    values: tuple[tuple[str, str, float], ...]


def extractive_draft(
    entries: Sequence[SourceEntry], analyses: Analyses, budget_tokens: int, count: TokenCounter = estimate_tokens
) -> Draft:
    """The best excerpts within the budget, one line for each entry that has any.

    The budget holds by `count` over the whole text; all entries were looked at in full.
    """
    candidates = [
        sentence
        for place, entry in enumerate(entries)
        if not entry.erased
        for sentence in _sentences(place, entry, analyses)
    ]
    chosen = _choose(candidates, budget_tokens)
    lines = _lines(entries, chosen)
    while lines and sum(count(line.text) + LINE_OVERHEAD_TOKENS for line in lines) > budget_tokens:
        chosen.pop()
        lines = _lines(entries, chosen)
    return Draft(strategy="extractive", lines=tuple(lines))


def _sentences(place: int, entry: SourceEntry, analyses: Analyses) -> Iterator[_Sentence]:
    if entry.role is Role.SYSTEM:
        return
    for analysed in analyses.of(entry):
        text = entry.text_of(analysed.part)
        for start, end, values in _valued(analysed.found, entry.role):
            if entry.role is Role.HUMAN and end - start >= STATEMENT_CHARACTERS_MIN:
                values.append(("statement", clause_form(text[start:end]), STATEMENT_WEIGHT))
            if values and end - start <= SENTENCE_CHARACTERS_MAX:
                written = escape_fences(text[start:end])
                yield _Sentence(place, start, written, estimate_tokens(written) + LINE_OVERHEAD_TOKENS, tuple(values))


def _valued(found: TextAnalysis, role: Role) -> Iterator[tuple[int, int, list[tuple[str, str, float]]]]:
    """Each sentence's span with the class, normal form and weight of what it carries."""
    clauses = {clause.start: clause for clause in found.clauses}
    atoms, at = found.atoms, 0
    for start, end in found.sentences:
        values: list[tuple[str, str, float]] = []
        clause = clauses.get(start)
        if clause is not None:
            values.append((clause.cls, clause.canon, clause_weight(clause.cls, role)))
        while at < len(atoms) and atoms[at].start < end:
            atom = atoms[at]
            if atom.start >= start and atom.end <= end:
                values.append((atom.cls, atom.canon, atom_weight(atom.cls, role)))
            at += 1
        yield start, end, values


def _choose(candidates: Sequence[_Sentence], budget_tokens: int) -> list[_Sentence]:
    """Chosen sentences, the best first."""
    covered: set[tuple[str, str]] = set()
    heap = [
        (-sum(weight for _, _, weight in sentence.values) / sentence.cost, number)
        for number, sentence in enumerate(candidates)
    ]
    heapq.heapify(heap)
    chosen: list[_Sentence] = []
    left = budget_tokens
    while heap and left > LINE_OVERHEAD_TOKENS:
        worth, number = heapq.heappop(heap)
        sentence = candidates[number]
        if sentence.cost > left:
            continue
        now = -sum(weight for cls, canon, weight in sentence.values if (cls, canon) not in covered) / sentence.cost
        if now == 0:
            continue
        if now > worth:
            heapq.heappush(heap, (now, number))  # others may be better by now
            continue
        chosen.append(sentence)
        covered.update((cls, canon) for cls, canon, _ in sentence.values)
        left -= sentence.cost
    return chosen


def _lines(entries: Sequence[SourceEntry], chosen: Sequence[_Sentence]) -> list[Line]:
    by_place: dict[int, list[_Sentence]] = {}
    for sentence in chosen:
        by_place.setdefault(sentence.place, []).append(sentence)
    lines = []
    for place in sorted(by_place):
        sentences = sorted(by_place[place], key=lambda sentence: sentence.start)
        text = " … ".join(" ".join(sentence.text.split("\n")) for sentence in sentences)
        lines.append(Line(SECTION, text, (entries[place].seq,), entries[place].role))
    return lines
