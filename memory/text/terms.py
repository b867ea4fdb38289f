"""Words for the lexical fields: any script, one spelling.

NFKC and case folding; accents, vowel points and Arabic harakat folded away; Latin and Cyrillic words stemmed, irregular
English forms first; scripts that are written without spaces (Chinese, Japanese, Korean particles, Thai, Lao, Khmer,
Burmese) in pairs of signs, the only unit that a question and a text share without a dictionary.
"""

import re
import sys
import unicodedata
from collections.abc import Callable
from functools import lru_cache

import Stemmer  # type: ignore[import-not-found]

from threadmark.memory.text.irregular_words import BASE_FORMS, FUNCTION_WORDS

__all__ = ["TOKENIZER", "folded", "terms"]

#: Changes whenever the same text would give other terms: it is part of the name of every vector space.
TOKENIZER = "t1"
TERM_LENGTH_MAX = 64

# Combining marks are no word characters to `re`, so a word of Devanagari or Thai would fall to pieces at its vowels.
_MARKS = "".join(chr(c) for c in range(0x300, 0x3000) if unicodedata.category(chr(c)) in {"Mn", "Mc"})
_WORD = re.compile(rf"[\w{_MARKS}]+")
_POINTS = {c: None for c in (*range(0x300, 0x370), *range(0x591, 0x5C8), *range(0x610, 0x61B), *range(0x64B, 0x660))}
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]+"
)
_ENGLISH, _RUSSIAN = Stemmer.Stemmer("english").stemWord, Stemmer.Stemmer("russian").stemWord


def folded(text: str) -> str:
    """One spelling of `text`, for comparing subjects, attributes, names and repeated statements."""
    text = unicodedata.normalize("NFKC", text).casefold()
    if not text.isascii():
        text = unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).translate(_POINTS))
    return " ".join(text.split())


def terms(text: str) -> list[str]:
    """The terms of `text`, in order, with repetitions."""
    found: list[str] = []
    for word in _WORD.findall(folded(text)):
        found.extend(_terms_of(word))
    return found


@lru_cache(maxsize=65_536)
def _terms_of(word: str) -> tuple[str, ...]:
    if word in FUNCTION_WORDS:
        return ()
    if word.isascii():
        return (sys.intern(_stem(word, _ENGLISH)),)
    parts: list[str] = []
    at = 0
    for run in _UNSPACED.finditer(word):
        parts.extend(_spaced(word[at : run.start()]))
        parts.extend(_pairs(run.group()))
        at = run.end()
    parts.extend(_spaced(word[at:]))
    return tuple(sys.intern(part) for part in parts)


def _spaced(word: str) -> list[str]:
    if not word or word in FUNCTION_WORDS:
        return []
    cyrillic = "\u0400" <= word[0] <= "\u052f"
    return [_stem(word, _RUSSIAN if cyrillic else _ENGLISH)]


def _stem(word: str, stem: Callable[[str], str]) -> str:
    return stem(BASE_FORMS.get(word, word)[:TERM_LENGTH_MAX])


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[at : at + 2] for at in range(len(run) - 1)]
