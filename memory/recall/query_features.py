"""What a question says beside its words: whom it names, which time it asks about. Pure."""

import re
from collections.abc import Iterable

from threadmark.memory.model.question import Question
from threadmark.memory.recall.ranking import QueryFeatures
from threadmark.memory.text.dates import asks_for_time, window
from threadmark.memory.text.terms import folded

__all__ = ["query_features"]

NAME_LENGTH_MIN = 3
_WORD = re.compile(r"[\w-]+")


def query_features(question: Question, speakers: Iterable[str]) -> QueryFeatures:
    """The cues of a question put to a conversation of `speakers` (folded names)."""
    words = f" {_spelled(folded(question.text))} "
    return QueryFeatures(
        speakers=frozenset(each for each in set(speakers) if _is_named(each, words)),
        window=window(question.text, question.asked_at),
        asks_when=asks_for_time(question.text),
    )


def _is_named(speaker: str, words: str) -> bool:
    """By the whole name, or by its first word. A possessive is two words by now."""
    whole = _spelled(speaker)
    first = whole.split(" ", 1)[0]
    return any(len(name) >= NAME_LENGTH_MIN and f" {name} " in words for name in (whole, first))


def _spelled(text: str) -> str:
    return " ".join(_WORD.findall(text))
