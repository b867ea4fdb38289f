"""Words that carry sense: for saying that two sentences are about the same thing, without a model."""

import re
import unicodedata

from threadmark.compaction.keyword_prefilter import words

__all__ = ["content_words", "grams"]

GRAM_LENGTH = 4
_TOKEN = re.compile(r"[a-z0-9_ß-ɏ]{2,40}|[\u3040-\u30ff\u4e00-\u9fff]{1,40}")
_EMPTY = frozenset(
    words("""
    the and to of is are for with on that this it be you we was not have will from at by in or as an but if they them
    our your my his her its do does did so than then there here what which who when where how why can could would should
    must may might has had been were being am me us any all no never always please also just only about into over under
    der die das und ist nicht ein eine einen einem einer den dem zu mit für auf wir ich sie es im von bis am an auch nur
    aber oder wenn als wie was wer wird werden wurde sind hat haben sein kein keine nie niemals muss müssen darf dürfen
    le la les et est des du un une pour dans que qui nous vous pas ne sur avec au aux ce cette il elle je se ou mais
    sont était être avoir doit doivent jamais plus par son sa ses
    el los las es en con por del al lo su como no se y un una para está ser debe deben nunca más pero son fue
    don doesn won isn didn cannot
    """)
)


def content_words(text: str) -> frozenset[str]:
    """The words of a text that carry sense, case and width aside; pairs of characters where a script has no blanks."""
    found: set[str] = set()
    small = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    for token in _TOKEN.findall(small):
        if token[0] >= "\u3040":
            found.update(token[at : at + 2] for at in range(max(1, len(token) - 1)))
        elif token not in _EMPTY:
            found.add(token)
    return frozenset(found)


def grams(form: str) -> frozenset[str]:
    """All runs of four characters of a normal form; the form itself where it is shorter."""
    if len(form) <= GRAM_LENGTH:
        return frozenset({form})
    return frozenset(form[at : at + GRAM_LENGTH] for at in range(len(form) - GRAM_LENGTH + 1))
