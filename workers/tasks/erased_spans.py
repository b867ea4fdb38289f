"""Spans of a text that are erased: each becomes `[erased]`, and spans of what stays are found again. Pure.

Spans are half-open, in code points of the text as it was said. `marks` are those that are gone, in order and apart.
They are kept beside the text, and both together give the present place of any other span:

    said     plays the cello and eats figs        marks   [(0, 15)]
    now      [erased] and eats figs               `eats figs` stood at (20, 29) and stands at (13, 22)
"""

from collections.abc import Iterable, Sequence

__all__ = ["ERASED", "Span", "erase_spans", "said_span", "span_now"]

#: Stands where words stood.
ERASED = "[erased]"
Span = tuple[int, int]


def erase_spans(text: str, marks: Sequence[Span], spans: Iterable[Span]) -> tuple[str, list[Span]]:
    """The text without `spans` too, and its marks. Spans beyond its end are cut there."""
    length = _said_length(text, marks)
    wanted = [(start, min(end, length)) for start, end in spans if start < min(end, length)]
    gone: list[Span] = []
    for start, end in sorted([*marks, *wanted]):
        if gone and start <= gone[-1][1]:
            gone[-1] = (gone[-1][0], max(end, gone[-1][1]))
        else:
            gone.append((start, end))
    parts: list[str] = []
    at = 0
    for start, end in gone:
        parts += [_kept(text, marks, at, start), ERASED]
        at = end
    return "".join([*parts, _kept(text, marks, at, length)]), gone


def span_now(marks: Sequence[Span], start: int, end: int) -> Span | None:
    """Where a span of what was said stands now; None if some of it is gone."""
    if any(start < gone_to and gone_from < end for gone_from, gone_to in marks):
        return None
    shift = sum(len(ERASED) - (gone_to - gone_from) for gone_from, gone_to in marks if gone_to <= start)
    return start + shift, end + shift


def said_span(marks: Sequence[Span], start: int, end: int) -> Span:
    """Which span of what was said stands at a span of the text now: of an erased part, the whole of it."""
    said_from, said_to, shift = start, end, 0
    for gone_from, gone_to in marks:
        now_from = gone_from + shift
        now_to = now_from + len(ERASED)
        shift += len(ERASED) - (gone_to - gone_from)
        if start >= now_to:
            said_from = start - shift
        elif start >= now_from:
            said_from = gone_from
        if end >= now_to:
            said_to = end - shift
        elif end > now_from:
            said_to = gone_to
    return said_from, said_to


def _said_length(text: str, marks: Sequence[Span]) -> int:
    return len(text) - sum(len(ERASED) - (end - start) for start, end in marks)


def _kept(text: str, marks: Sequence[Span], start: int, end: int) -> str:
    now = span_now(marks, start, end)
    return "" if now is None or start >= end else text[now[0] : now[1]]
