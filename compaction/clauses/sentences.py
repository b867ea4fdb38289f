"""Sentences of a text: where one ends, in scripts with and without blanks."""

import re

from compaction.atoms.calendar_words import MONTHS
from compaction.wordlead import words

__all__ = ["sentences"]

SENTENCE_MAX = 400  #: code points; a longer one is cut at a blank
_END = re.compile(r"[.!?…]{1,8}+[\"'”»’)\]]{0,4}+(?=\s)|[。！？]{1,8}+[」』”\"]{0,4}+|；|;(?= )|\n")
_LAST_WORD = re.compile(r"\S{1,20}+")
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
    last = _LAST_WORD.match(text[max(0, dot - 20) : dot][::-1])
    word = last[0][::-1].lstrip("(\"'“„«").lower() if last else ""
    if word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha()):
        return True
    following = _NEXT_WORD.match(text, dot + 1)
    if word.isdigit() and following and following[1].lower() in MONTHS:
        return True
    # The number of a list item stands alone at the start of its line.
    return word.isdigit() and len(word) <= len("999") and text[: dot - len(word)].rstrip(_EDGES)[-1:] in ("", "\n")


def _add(text: str, start: int, end: int, spans: list[tuple[int, int]]) -> None:
    while start < end and (text[start] in _EDGES or text[start] == "\n"):
        start += 1
    bullet = _BULLET.match(text, start, end)
    start = bullet.end() if bullet else start
    while end > start and (text[end - 1] in _EDGES or text[end - 1] == "\n"):
        end -= 1
    while end - start > SENTENCE_MAX:
        cut = text.rfind(" ", start + SENTENCE_MAX // 2, start + SENTENCE_MAX)
        cut = cut if cut > 0 else start + SENTENCE_MAX
        spans.append((start, cut))
        start = cut + 1 if text[cut] == " " else cut
    if end > start:
        spans.append((start, end))
