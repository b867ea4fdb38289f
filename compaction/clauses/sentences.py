"""Sentences of a text: where one ends, in scripts with and without blanks."""

import re

from threadmark.compaction.atoms.calendar_words import MONTHS
from threadmark.compaction.keyword_prefilter import words

__all__ = ["sentences"]

SENTENCE_MAX = 400  #: code points; a longer one is cut at a blank
#: It begins with a set of characters, to which the engine runs ahead.
_END = re.compile(
    r"[.!?…。！？；;\n](?:(?<=[.!?…])[.!?…]{0,7}+[\"'”»’)\]]{0,4}+(?=\s)|(?<=[。！？])[。！？]{0,7}+[」』”\"]{0,4}+"
    r"|(?<=[；\n])|(?<=;)(?= ))"
)
_NEXT_WORD = re.compile(r"\s{1,4}([A-Za-zÀ-ɏ]{1,20})")
_ABBREVIATIONS = frozenset(
    words("""
    mr mrs ms dr prof st sr sra dra no nr vs etc e.g i.e inc ltd corp co jr approx fig vol ca z.b d.h u.a bzw usw ggf
    evtl ca. hr fr m mme p.ex env ej p.ej núm art pág abs str tel
    """)
)
_EDGES = " \t\r\u3000\u00a0"
_BULLET = re.compile(r"[-*•>#]{1,3}+[ \t]{1,4}+|\d{1,3}[.)][ \t]{1,4}+")


def sentences(text: str) -> list[tuple[int, int]]:
    """The spans of the sentences, without blanks, bullets and list numbers at their edges; none is empty."""
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _END.finditer(text):
        if match[0] == "." and _goes_on(text, match.start()):
            continue
        _add(text, start, match.end(), spans)
        start = match.end()
    _add(text, start, len(text), spans)
    return spans


def _goes_on(text: str, dot: int) -> bool:
    """Whether the full stop belongs to a shortened word or to the day of a date."""
    before = text[max(0, dot - 20) : dot]
    word = before.split()[-1].lstrip("(\"'“„«").lower() if before and not before[-1].isspace() else ""
    if word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha()):
        return True
    if not word.isdigit():
        return False
    following = _NEXT_WORD.match(text, dot + 1)
    if following and following[1].lower() in MONTHS:
        return True
    # The number of a list item stands alone at the start of its line.
    at = dot - len(word)
    while at and text[at - 1] in _EDGES:
        at -= 1
    return len(word) <= len("999") and (at == 0 or text[at - 1] == "\n")


def _add(text: str, start: int, end: int, spans: list[tuple[int, int]]) -> None:
    while start < end and (text[start] in _EDGES or text[start] == "\n"):
        start += 1
    if start < end and not text[start].isalpha() and (bullet := _BULLET.match(text, start, end)):
        start = bullet.end()
    while end > start and (text[end - 1] in _EDGES or text[end - 1] == "\n"):
        end -= 1
    while end - start > SENTENCE_MAX:
        cut = text.rfind(" ", start + SENTENCE_MAX // 2, start + SENTENCE_MAX)
        cut = cut if cut > 0 else start + SENTENCE_MAX
        spans.append((start, cut))
        start = cut + 1 if text[cut] == " " else cut
    if end > start:
        spans.append((start, end))
