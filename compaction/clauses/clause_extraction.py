"""All clauses of a text: sentences with a cue, the strongest cue deciding the class."""

import re
import unicodedata
from collections.abc import Callable, Iterable
from itertools import pairwise

from threadmark.compaction.atoms.language import guess_language
from threadmark.compaction.clauses.clause import Clause, ClauseClass
from threadmark.compaction.clauses.cues import CJK_CUE, CJK_CUES, CUE, CUES
from threadmark.compaction.clauses.forms import ENDINGS, NEGATION, POLAR, POLITE_REQUEST, Ending
from threadmark.compaction.clauses.narration import TELLING
from threadmark.compaction.clauses.sentences import sentences

__all__ = ["clause_form", "cues_by_place", "extract_clauses", "is_negative", "lowered", "without_polarity"]

_RUN = re.compile(r"[a-z0-9_ß-ɏ]+")
#: What may stand neither before nor behind a cue, as in `CUE`.
_BEFORE, _BEHIND = re.compile(r"[A-Za-z0-9_À-ɏ]"), re.compile(r"[a-z0-9_ß-ɏ]")
#: With more cues than these to look for, one pattern for all of them is faster.
_CUES_MAX = 64

#: Who wins where a sentence has cues of several classes.
_STRENGTH = (
    ClauseClass.CORRECTION,
    ClauseClass.DECISION,
    ClauseClass.OPEN_QUESTION,
    ClauseClass.CONSTRAINT,
    ClauseClass.COMMITMENT,
)
_LETTERS_MIN = 3
_SHORT = 160  #: code points; the language of a shorter text is too much of a guess to try its word forms alone
_Finder = tuple[ClauseClass, Callable[[str], object], tuple[str, ...]]


def _finders(endings: Iterable[Ending]) -> tuple[_Finder, ...]:
    # A search for what stands at the beginning alone would try it at every character.
    return tuple(
        (each.cls, each.pattern.match if each.pattern.pattern.startswith(r"\A") else each.pattern.search, each.hints)
        for each in endings
    )


_FINDERS = {language: _finders(endings) for language, endings in ENDINGS.items()}
_ALL_FINDERS = tuple(finder for finders in _FINDERS.values() for finder in finders)
_ALL_TELLING = tuple(TELLING.values())
_QUESTION = re.compile(r"[?？][\"'”»」』)]{0,3}\Z")
_QUESTION_JA = re.compile(r"(?:ます|です|ません|でしょう|のでしょう|の)か[。]?\Z")
_QUESTION_ZH = re.compile(r"[吗呢][。]?\Z")
_OUTER = " \t\n.!。！；;,，、\"'“”„«»「」『』()`*_"


def extract_clauses(text: str, spans: list[tuple[int, int]] | None = None, language: str | None = None) -> list[Clause]:
    """The clauses of `text` in the order of their places.

    `spans` are its sentences and `language` is its language, where the caller has them.
    """
    small = lowered(text)
    language = language or guess_language(text)
    spans = sentences(text) if spans is None else spans
    is_guess = len(text) < _SHORT and language not in ("zh", "ja")
    finders = _possible(_ALL_FINDERS if is_guess else _FINDERS[language], small)
    telling = _ALL_TELLING if is_guess else (TELLING[language],)
    cues = cues_by_place(small)
    clauses: list[Clause] = []
    at = 0
    for start, end in spans:
        found: list[ClauseClass] = []
        while at < len(cues) and cues[at][0] < end:
            if cues[at][0] >= start:
                found.append(cues[at][1])
            at += 1
        sentence = small[start:end]
        cls = _class_of(sentence, set(found), language, finders)
        if cls is ClauseClass.CONSTRAINT and found.count(cls) <= 1 and any(each.search(sentence) for each in telling):
            continue
        if cls is not None and sum(map(str.isalpha, text[start:end][:40])) >= _LETTERS_MIN:
            clauses.append(
                Clause(cls, start, end, clause_form(text[start:end]), bool(NEGATION.search(small, start, end)))
            )
    return clauses


def _possible(finders: Iterable[_Finder], small: str) -> list[_Finder]:
    """Those that may find anything in the text."""
    possible = []
    for finder in finders:
        for hint in finder[2]:
            if hint in small:
                possible.append(finder)
                break
    return possible


def _class_of(sentence: str, found: set[ClauseClass], language: str, finders: Iterable[_Finder]) -> ClauseClass | None:
    for cls, find, _ in finders:
        if cls not in found and find(sentence):
            found.add(cls)
    if _is_question(sentence, language):
        # "Could you never …?" asks for a rule; "must we …?" asks.
        if ClauseClass.CONSTRAINT in found and POLITE_REQUEST.match(sentence):
            return ClauseClass.CONSTRAINT
        return ClauseClass.CORRECTION if ClauseClass.CORRECTION in found else ClauseClass.OPEN_QUESTION
    return next((cls for cls in _STRENGTH if cls in found), None)


def _is_question(sentence: str, language: str) -> bool:
    if ("?" in sentence or "？" in sentence) and _QUESTION.search(sentence):
        return True
    return (language == "ja" and bool(_QUESTION_JA.search(sentence))) or (
        language == "zh" and bool(_QUESTION_ZH.search(sentence))
    )


def clause_form(written: str) -> str:
    """The sentence without differences of case, width, blanks and outer punctuation."""
    return " ".join(unicodedata.normalize("NFKC", written).casefold().split()).strip(_OUTER)


def is_negative(text: str) -> bool:
    """Whether the text denies or forbids."""
    return bool(NEGATION.search(lowered(text)))


def without_polarity(text: str) -> str:
    """The form of the text, without the words that say which way it goes and without blanks."""
    return clause_form(POLAR.sub(" ", lowered(text))).replace(" ", "")


def lowered(text: str) -> str:
    """The text in small letters with every code point in its place, and with one kind of apostrophe."""
    small = text.lower().replace("’", "'")
    if len(small) == len(text):
        return small
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text).replace("’", "'")


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
