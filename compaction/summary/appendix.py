"""Kept facts: what must not be lost and the summary lost, word for word with its place, within a budget."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.input.source import Position, Role, SourceEntry
from threadmark.compaction.ledger import RowKey, UnitKind
from threadmark.compaction.ledger.collect import Unit
from threadmark.compaction.ledger.weights import salience
from threadmark.compaction.summary.drafts import Line, TokenCounter
from threadmark.compaction.view.stubs import escape_fences

__all__ = ["Appendix", "make_appendix"]

SECTION = "Kept facts"
CONTEXT_CHARACTERS = 60  #: on each side of a value whose sentence is too long to be quoted whole
SENTENCE_CHARACTERS_MAX = 240
LINE_OVERHEAD_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Appendix:
    """The lines in the order of the thread; `left_out` are units for which there was no room."""

    lines: tuple[Line, ...]
    left_out: frozenset[RowKey]


@dataclass(frozen=True, slots=True)
class _Quote:
    """What of an entry is quoted, and which units that keeps."""

    position: Position
    part: int
    start: int
    end: int
    text: str
    role: Role


def make_appendix(
    lost: Iterable[Unit],
    entries: Mapping[Position, SourceEntry],
    analyses: Analyses,
    budget_tokens: int,
    count: TokenCounter,
) -> Appendix:
    """Quote the lost units by salience until the budget is spent; what a quote already has costs nothing more.

    Clauses come before atoms of the same salience: a rule says what its values are for.
    """
    ranked = sorted(lost, key=lambda unit: (-salience(unit), unit.key.unit is UnitKind.ATOM, unit.sources[0]))
    quotes: list[_Quote] = []
    left_out: set[RowKey] = set()
    left = budget_tokens
    for unit in ranked:
        # The last time it was said is the one that holds.
        source = next(
            (each for each in reversed(unit.sources) if _says(entries, each.seq, each.message, unit)), unit.sources[0]
        )
        entry = entries[Position(source.seq, source.message)]
        if _is_quoted(quotes, entry.position, source.part, source.start, source.end):
            continue
        quote = _quote(entry, source.part, source.start, source.end, analyses)
        cost = count(quote.text) + LINE_OVERHEAD_TOKENS
        if cost > left and (quote.start, quote.end) != (source.start, source.end):
            quote = _exact(entry, source.part, source.start, source.end)
            cost = count(quote.text) + LINE_OVERHEAD_TOKENS
        if cost > left:
            left_out.add(unit.key)
            continue
        quotes.append(quote)
        left -= cost
    return Appendix(_lines(quotes), frozenset(left_out))


def _says(entries: Mapping[Position, SourceEntry], seq: int, message: int, unit: Unit) -> bool:
    return entries[Position(seq, message)].role is unit.role


def _is_quoted(quotes: Sequence[_Quote], position: Position, part: int, start: int, end: int) -> bool:
    return any(
        quote.position == position and quote.part == part and quote.start <= start and end <= quote.end
        for quote in quotes
    )


def _quote(entry: SourceEntry, part: int, start: int, end: int, analyses: Analyses) -> _Quote:
    """The sentence around the span, or as much of it as is read at a glance."""
    found = next(each.found for each in analyses.of(entry) if each.part == part)
    first, last = next(((a, z) for a, z in found.sentences if a <= start and end <= z), (start, end))
    if last - first > SENTENCE_CHARACTERS_MAX and end - start < SENTENCE_CHARACTERS_MAX:
        text = entry.text_of(part)
        first = _blank_before(text, max(first, start - CONTEXT_CHARACTERS), start)
        last = _blank_after(text, end, min(last, end + CONTEXT_CHARACTERS))
    return _exact(entry, part, first, last)


def _blank_before(text: str, low: int, start: int) -> int:
    at = text.find(" ", low, start)
    return start if at < 0 else at + 1


def _blank_after(text: str, end: int, high: int) -> int:
    at = text.rfind(" ", end, high)
    return end if at < 0 else at


def _exact(entry: SourceEntry, part: int, start: int, end: int) -> _Quote:
    text = escape_fences(" ".join(entry.text_of(part)[start:end].split("\n")))
    return _Quote(entry.position, part, start, end, text, entry.role)


def _lines(quotes: Sequence[_Quote]) -> tuple[Line, ...]:
    ordered = sorted(quotes, key=lambda quote: (quote.position, quote.part, quote.start))
    return tuple(Line(SECTION, quote.text, (quote.position.seq,), quote.role) for quote in ordered)
