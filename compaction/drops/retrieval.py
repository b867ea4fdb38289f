"""The order of dropped units as answers to a question that is asked in other words: no model, within one thread.

What speaks for a unit: words that it and the question share, those of the sentence around it, those of the message
before it (often the question that it answers), and that it is, holds or stands in something of the class that was asked
for. Each counts by its rarity in the thread, so that a class of which there are hundreds decides little.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log

from threadmark.compaction.content_words import content_words
from threadmark.compaction.drops.question_types import classes_asked
from threadmark.compaction.input.source import Role
from threadmark.compaction.keyword_prefilter import words

__all__ = ["Candidate", "answer_scores"]

#: Words of European languages are compared by their beginnings: endings differ between a question and its answer.
STEM_LENGTH = 5
OWN, AROUND, BEFORE = 1.0, 1.0, 0.4
#: A unit of the class that was asked for; one that holds such a unit, or stands in it.
OF_CLASS, NEAR_CLASS = 2.0, 1.0
#: Longer texts share words with everything.
LENGTH_FAIR = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A dropped unit, in its place."""

    row_id: str
    role: Role
    text: str
    around: str  #: with its own text
    before: str  #: the message before
    cls: str
    classes: frozenset[str]  #: its own, those of what it holds, and those of what holds it


#: Pairs of hiragana are endings and particles.
_ENDINGS = re.compile("[\u3040-\u309f]+")
_EMPTY = frozenset(
    words("""
    comme si aussi très
    much many does did done give gives get gets got need needs want wants like make made one two some any still yet
    unter über nach vor bei durch gegen ohne seit welche welcher welches welchen welchem viel viele wieviel mein unser
    unsere unserer wann wem wen wo soll sollen kann können gibt uns mir dir dich mich man mehr noch schon
    quel quelle quels quelles combien quand où qui quoi comment pourquoi faut peut fait mon mes nos vos votre notre leur
    qué cuál cuáles cuánto cuánta cuándo dónde quién cómo nos les sus mi mis tiene tienen hay puede hace
    什么 哪个 哪里 哪些 我们 你们 可以 多少 怎么 是什 么时 时候 一个 这个 那个 何で 何時 何番
    """)
)
#: A message that asks is seldom the answer to another question.
_ASKS = re.compile(r"(?:[?？]|か[。]?)\s*$")
ASKS_WEIGHT = 0.3
#: People are asked about what people said; a tool's output has values by the hundred.
ROLE_WEIGHTS = {Role.HUMAN: 1.5, Role.SYSTEM: 1.0, Role.AI: 1.0, Role.TOOL: 0.8}


def stems(text: str) -> frozenset[str]:
    """The words of a text that carry sense, without their endings; pairs of characters in Chinese and Japanese."""
    return frozenset(
        word if word[0] >= "\u3040" else word[:STEM_LENGTH]
        for word in content_words(text)
        if word not in _EMPTY and not _ENDINGS.fullmatch(word)
    )


def answer_scores(candidates: Sequence[Candidate], question: str) -> Mapping[str, float]:
    """What speaks for each candidate; 0 where nothing does."""
    stems_of = cache(stems)  # the units of one message have the same message before them
    asked, wanted = stems(question), classes_asked(question)
    around = [stems_of(each.around) & asked for each in candidates]
    before = [stems_of(each.before) & asked for each in candidates]
    rare = _rarities([a | b for a, b in zip(around, before, strict=True)])
    classes = _rarities([each.classes & wanted.keys() for each in candidates])
    scores: dict[str, float] = {}
    for each, near, earlier in zip(candidates, around, before, strict=True):
        own = near & stems_of(each.text)
        shared = OWN * _sum(own, rare) + AROUND * _sum(near, rare) + BEFORE * _sum(earlier - near, rare)
        kinds = [classes[cls] * wanted[cls] for cls in each.classes & wanted.keys()]
        weight = OF_CLASS if each.cls in wanted else NEAR_CLASS
        kind = weight * (0.7 * max(kinds, default=0.0) + 0.3 * sum(kinds))
        length = 1 + max(0.0, log(max(1, len(each.around)) / LENGTH_FAIR))
        asks = ASKS_WEIGHT if _ASKS.search(each.text) else 1.0
        scores[each.row_id] = ROLE_WEIGHTS[each.role] * asks * (shared + kind) / length
    return scores


def _rarities(found: Sequence[frozenset[str]]) -> dict[str, float]:
    holders = Counter(word for each in found for word in each)
    return {word: log(1 + len(found) / count) for word, count in holders.items()}


def _sum(words: Iterable[str], rarities: Mapping[str, float]) -> float:
    return sum(rarities[word] for word in words)
