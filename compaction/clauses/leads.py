"""Where cues stand in a text: its words and pairs of words say which ones it can have; only these are looked for."""

import re
from itertools import pairwise

from threadmark.compaction.clauses.clause import ClauseClass
from threadmark.compaction.clauses.cues import CJK_CUE, CJK_CUES, CUE, CUES

__all__ = ["cues_by_place"]

_RUN = re.compile(r"[a-z0-9_ß-ɏ]+")
#: What may stand neither before nor behind a cue, as in `CUE`.
_BEFORE, _BEHIND = re.compile(r"[A-Za-z0-9_À-ɏ]"), re.compile(r"[a-z0-9_ß-ɏ]")
#: With more cues than these to look for, one pattern for all of them is faster.
_CUES_MAX = 64


def _by_runs() -> tuple[dict[str, list[str]], dict[tuple[str, str], list[str]]]:
    """The cues of one word, and the others by their first two: where a cue stands, these are words of the text."""
    single: dict[str, list[str]] = {}
    paired: dict[tuple[str, str], list[str]] = {}
    for cue in CUES:
        first, *more = _RUN.findall(cue)
        if more:
            paired.setdefault((first, more[0]), []).append(cue)
        else:
            single.setdefault(first, []).append(cue)
    return single, paired


_SINGLE, _PAIRED = _by_runs()


def cues_by_place(small: str) -> list[tuple[int, ClauseClass]]:
    """Place and class of each cue in a text of small letters, in order."""
    runs = _RUN.findall(small)
    possible = [cue for run in _SINGLE.keys() & runs for cue in _SINGLE[run]]
    possible.extend(cue for pair in _PAIRED.keys() & pairwise(runs) for cue in _PAIRED[pair])
    if len(possible) > _CUES_MAX:
        cues = [(match.start(), CUES[match[0]]) for match in CUE.finditer(small)]
    else:
        cues = _few(small, possible)
    if not small.isascii():
        cues.extend((match.start(), CJK_CUES[match[0]]) for match in CJK_CUE.finditer(small))
        cues.sort()
    return cues


def _few(small: str, possible: list[str]) -> list[tuple[int, ClauseClass]]:
    spans: list[tuple[int, int, ClauseClass]] = []
    for cue in possible:
        at = small.find(cue)
        while at >= 0:
            end = at + len(cue)
            if not (at and _BEFORE.match(small, at - 1)) and not _BEHIND.match(small, end):
                spans.append((at, -end, CUES[cue]))
            at = small.find(cue, at + 1)
    spans.sort()
    cues: list[tuple[int, ClauseClass]] = []
    done = 0
    for start, end, cls in spans:
        if start >= done:  # the longest that begins here; what it covers is no cue of its own
            cues.append((start, cls))
            done = -end
    return cues
