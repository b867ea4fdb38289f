"""Whether a summary says a clause in other words, the opposite of it, or the same of another value."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from heapq import nlargest
from math import ceil

from threadmark.compaction.atoms import Atom
from threadmark.compaction.clauses import clause_form, is_negative, without_polarity
from threadmark.compaction.content_words import content_words, grams
from threadmark.compaction.ledger.evidence import Passage
from threadmark.compaction.ledger.rows import Place

__all__ = ["Likeness", "SummarySentences", "Verdict"]

GRAMS_KEPT = 0.8  #: share of a clause's runs of four characters that one sentence has
WORDS_KEPT = 0.7  #: share of a clause's content words that one sentence has
WORDS_FLOOR = 0.6  #: with less in common, runs of characters are not compared
FLIP_WORDS_KEPT = 0.85  #: a flip is a hard word to say: it needs more in common
FLIP_GRAMS_KEPT = 0.75  #: of what is left of both without "not", "must" and "may"
_CANDIDATES_MAX = 5


class Verdict(Enum):
    """How a summary's sentence stands to a clause."""

    SAME = "same"
    PARAPHRASE = "paraphrase"
    FLIPPED = "flipped"
    OTHER_VALUE = "other_value"


@dataclass(frozen=True, slots=True)
class Likeness:
    """The verdict and the sentence that it is about."""

    verdict: Verdict
    place: Place


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    place: Place
    words: frozenset[str]
    grams: frozenset[str]
    atoms: frozenset[tuple[str, str]]
    negative: bool


class SummarySentences:
    """The sentences of the summary segments, by their words."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._sentences: list[_Sentence] = []
        self._by_word: dict[str, list[int]] = {}
        for passage in passages:
            for start, end in passage.found.sentences:
                self._add(passage, start, end)

    def _add(self, passage: Passage, start: int, end: int) -> None:
        text = passage.text[start:end]
        sentence = _Sentence(
            text,
            passage.place(start, end),
            content_words(text),
            grams(clause_form(text)),
            _values(atom for atom in passage.found.atoms if start <= atom.start and atom.end <= end),
            is_negative(text),
        )
        for word in sentence.words:
            self._by_word.setdefault(word, []).append(len(self._sentences))
        self._sentences.append(sentence)

    def judge(self, text: str, atoms: Iterable[Atom], *, negative: bool) -> Likeness | None:
        """The likest sentence's verdict on a clause; None where no sentence is about the same."""
        words = content_words(text)
        candidates = self._candidates(words)
        if not candidates:
            return None
        runs, values = grams(clause_form(text)), _values(atoms)
        verdicts = [
            Likeness(verdict, sentence.place)
            for share, sentence in candidates
            if (verdict := _verdict(sentence, text, share, runs, values, negative=negative))
        ]
        return min(verdicts, key=lambda likeness: list(Verdict).index(likeness.verdict), default=None)

    def _candidates(self, words: frozenset[str]) -> list[tuple[float, _Sentence]]:
        """The sentences that share most words, with the share.

        Who shares six of ten words has one of the five rarest: only the lists of those are read.
        """
        rarest = sorted(words, key=lambda word: len(self._by_word.get(word, ())))
        needed = rarest[: len(words) - ceil(WORDS_FLOOR * len(words)) + 1]
        places = {at for word in needed for at in self._by_word.get(word, ())}
        shares = [(len(words & self._sentences[at].words) / len(words), at) for at in places]
        best = nlargest(_CANDIDATES_MAX, (each for each in shares if each[0] >= WORDS_FLOOR))
        return [(share, self._sentences[at]) for share, at in best]


def _values(atoms: Iterable[Atom]) -> frozenset[tuple[str, str]]:
    return frozenset((atom.cls, atom.canon) for atom in atoms)


def _verdict(
    sentence: _Sentence,
    text: str,
    words_shared: float,
    runs: frozenset[str],
    values: frozenset[tuple[str, str]],
    *,
    negative: bool,
) -> Verdict | None:
    runs_shared = len(runs & sentence.grams) / len(runs)
    if sentence.negative != negative:
        is_same = max(words_shared, runs_shared) >= FLIP_WORDS_KEPT or _is_opposite(text, sentence.text)
        return Verdict.FLIPPED if is_same else None
    if words_shared < WORDS_KEPT and runs_shared < GRAMS_KEPT:
        return None
    if not values <= sentence.atoms:
        return Verdict.OTHER_VALUE if sentence.atoms - values else None
    return Verdict.SAME if runs_shared >= GRAMS_KEPT else Verdict.PARAPHRASE


def _is_opposite(text: str, other: str) -> bool:
    """Whether two sentences that go different ways are about the same."""
    runs = grams(without_polarity(text))
    return len(runs & grams(without_polarity(other))) >= FLIP_GRAMS_KEPT * len(runs)
