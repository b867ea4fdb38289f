"""Drafts of a summary: lines with pointers to the entries they tell of, and the passage that the ledger reads."""

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from threadmark.compaction.input.analysis import analyse_text
from threadmark.compaction.ledger import Passage

__all__ = ["Draft", "Line", "TokenCounter", "estimate_tokens", "passage_of", "pointer", "text_of"]

#: Counts the tokens of a text; the same counter over a whole compaction.
TokenCounter = Callable[[str], int]

#: What we write ourselves at the head of a line: a section, a bullet, a pointer. It is no claim of the summary.
_OURS = re.compile(
    r"(?m)^(?:#{1,3} [A-Z][a-z ]{2,30}|[A-Z][a-z ]{2,30}:|- )?(?:\[[0-9][0-9 ,–\-]{0,80}(?: [a-z]{2,6})?\] )?"
)
_CHARACTERS_PER_TOKEN = 4


class Line(msgspec.Struct, frozen=True):
    """One line of a summary, under a section. `seqs` are the entries it tells of; none where it does not say."""

    section: str
    text: str
    seqs: tuple[int, ...] = ()
    role: str = ""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A summary before it is judged. `strategy` says how it was made."""

    strategy: str
    lines: tuple[Line, ...]


def pointer(seqs: Sequence[int], role: str = "") -> str:
    """`[12] `, `[12, 15 human] `: the entries a line tells of."""
    if not seqs:
        return ""
    return f"[{', '.join(map(str, seqs[:12]))}{' ' if role else ''}{role}] "


def text_of(lines: Iterable[Line]) -> str:
    """The lines as the model reads them, each section under its name."""
    written: list[str] = []
    section = None
    for line in lines:
        if line.section != section:
            section = line.section
            written.append(f"{section}:")
        written.append(f"- {pointer(line.seqs, line.role)}{line.text}")
    return "\n".join(written)


def passage_of(segment_id: str, text: str) -> Passage:
    """A summary's text as the ledger reads it: our own marks are blanks, so that they are no atoms of anybody."""
    masked = _OURS.sub(lambda match: " " * len(match[0]), text)
    return Passage(text=masked, found=analyse_text(masked), persistent=True, segment_id=segment_id)


def estimate_tokens(text: str) -> int:
    """A cheap upper estimate: a token for four ASCII characters, one for each other character."""
    if text.isascii():
        return len(text) // _CHARACTERS_PER_TOKEN + 1
    wide = sum(char > "\u024f" for char in text)
    return (len(text) - wide) // _CHARACTERS_PER_TOKEN + wide + 1
