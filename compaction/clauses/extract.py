"""All clauses of a text: sentences with a cue, the strongest cue deciding the class."""

import re
import unicodedata
from collections.abc import Sequence

from compaction.atoms.language import guess_language
from compaction.clauses.clause import Clause, ClauseClass
from compaction.clauses.forms import ENDINGS, NEGATION, POLITE_REQUEST, Ending
from compaction.clauses.leads import cues_by_place
from compaction.clauses.sentences import sentences
from compaction.clauses.telling import TELLING

__all__ = ["clause_form", "extract_clauses", "is_negative", "lowered"]

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
_ALL_ENDINGS = tuple(ending for endings in ENDINGS.values() for ending in endings)
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
    endings = _possible(_ALL_ENDINGS if is_guess else ENDINGS[language], small)
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
        cls = _class_of(sentence, set(found), language, endings)
        if cls is ClauseClass.CONSTRAINT and found.count(cls) <= 1 and any(each.search(sentence) for each in telling):
            continue
        if cls is not None and sum(map(str.isalpha, text[start:end][:40])) >= _LETTERS_MIN:
            clauses.append(
                Clause(cls, start, end, clause_form(text[start:end]), bool(NEGATION.search(small, start, end)))
            )
    return clauses


def _possible(endings: Sequence[Ending], small: str) -> list[Ending]:
    """Those that the text may match."""
    found = []
    for ending in endings:
        for hint in ending.hints:
            if hint in small:
                found.append(ending)
                break
    return found


def _class_of(sentence: str, found: set[ClauseClass], language: str, endings: Sequence[Ending]) -> ClauseClass | None:
    for ending in endings:
        if ending.cls not in found and ending.pattern.search(sentence):
            found.add(ending.cls)
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


def lowered(text: str) -> str:
    """The text in small letters with every code point in its place, and with one kind of apostrophe."""
    small = text.lower().replace("’", "'")
    if len(small) == len(text):
        return small
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text).replace("’", "'")
