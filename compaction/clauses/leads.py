"""Where cues stand in a text: a look at the words of the text first, as most texts have few words that begin a cue."""

import re

from compaction.clauses.clause import ClauseClass
from compaction.clauses.cues import CJK_CUE, CJK_CUES, CUE, CUES

__all__ = ["cues_by_place"]

#: A whole run of letters and digits: where a cue stands, its first run is one of the text's.
_RUN = re.compile(r"[a-z0-9_ß-ɏ]+")
_GOES_ON = r"(?![a-z0-9_ß-ɏ])"
#: With more beginnings than these in a text, one pattern for all cues is faster than one for each.
_BEGINNINGS_MAX = 64


def _pattern(beginning: str, cues: list[str]) -> re.Pattern[str]:
    """The cues that begin with this run, the longest first, where the run begins a word: as in `CUE`."""
    rests = "|".join(re.escape(cue[len(beginning) :]) for cue in sorted(cues, key=lambda cue: (-len(cue), cue)))
    lead = re.escape(beginning)
    return re.compile(f"{lead}(?<![A-Za-z0-9_À-ɏ]{lead})(?:{rests}){_GOES_ON}")


def _by_beginning() -> dict[str, re.Pattern[str]]:
    cues: dict[str, list[str]] = {}
    for cue in CUES:
        run = _RUN.match(cue)
        if run is None:
            raise ValueError(f"{cue!r} begins with no letter")
        cues.setdefault(run[0], []).append(cue)
    return {beginning: _pattern(beginning, each) for beginning, each in cues.items()}


_PATTERNS = _by_beginning()


def cues_by_place(small: str) -> list[tuple[int, ClauseClass]]:
    """Place and class of each cue in a text of small letters, in order."""
    beginnings = _PATTERNS.keys() & _RUN.findall(small)
    if len(beginnings) > _BEGINNINGS_MAX:
        cues = [(match.start(), CUES[match[0]]) for match in CUE.finditer(small)]
    else:
        cues = _few(small, beginnings)
    if not small.isascii():
        cues.extend((match.start(), CJK_CUES[match[0]]) for match in CJK_CUE.finditer(small))
        cues.sort()
    return cues


def _few(small: str, beginnings: set[str]) -> list[tuple[int, ClauseClass]]:
    spans = [
        (match.start(), match.end(), CUES[match[0]])
        for beginning in beginnings
        for match in _PATTERNS[beginning].finditer(small)
    ]
    spans.sort()
    cues: list[tuple[int, ClauseClass]] = []
    done = 0
    for start, end, cls in spans:
        if start >= done:  # a cue inside of a longer one is none
            cues.append((start, cls))
            done = end
    return cues
