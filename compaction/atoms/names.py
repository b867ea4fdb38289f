"""Finder of names: behind a title, with a known given name or an organisation's ending, or two capitalised words."""

# ruff: noqa: PLR2004 - the numbers are the shapes of the values that are looked for

import re
import unicodedata

from threadmark.compaction.atoms.atom import AtomClass
from threadmark.compaction.atoms.canvas import Canvas
from threadmark.compaction.atoms.people import (
    COMMON_WORDS,
    GIVEN_NAMES,
    HONORIFICS_JA,
    ORGANISATION_ENDINGS,
    ROLES_ZH,
    SURNAMES_ZH,
    TITLES,
    TITLES_SMALL,
)
from threadmark.compaction.keyword_prefilter import words

__all__ = ["find_names"]

_WORD = r"[A-ZÀ-ÖØ-Þ](?:[a-zß-öø-ÿ'’\-]|[A-ZÀ-Þ](?=[a-zß-ÿ])){1,24}"
_LINK = r"(?: (?:de la|de los|de|del|van der|van den|van|von der|von|zu|da|di|el|al|bin|of|&))?"
_SEQUENCE = re.compile(
    rf"[A-ZÀ-ÖØ-Þ](?<![A-Za-z0-9_À-ɏ@.$#/]\w)(?:(?<=[MJ])\.)?(?:[a-zß-öø-ÿ'’\-]|[A-ZÀ-Þ](?=[a-zß-ÿ])){{0,24}}\.?"
    rf"(?:{_LINK} (?:(?:GmbH|AG|SE|KG|LLC|SARL|SAS|PLC|SA|S\.A\.|SL|S\.L\.|BV|NV|AB|Inc\.?|Ltd\.?|Corp\.?)"
    rf"(?![A-Za-zÀ-ɏ])"
    rf"|(?:Dr|Dra|Prof|Mr|Mrs|Ms|Sr|Sra|Mme)\.|{_WORD}|[A-Z]\.)){{0,5}}"
)
#: "L'offre de" begins no name, "L'Oréal" does.
_ELIDED = re.compile(r"[LD]['’][a-zß-ÿ]")
_NAME_ZH = re.compile(rf"[{SURNAMES_ZH}]([\u4e00-\u9fff]{{0,2}}?)({'|'.join(ROLES_ZH)})")
_CUE_ZH = re.compile(
    rf"(?:联系人|负责人|客户|同事|联系|我叫|名叫|叫做|由|请|找|给|跟|和|问|让|通知"
    r"|经办人|签字人|姓名|抄送|：)[是为：: ]?"
    rf"([{SURNAMES_ZH}][\u4e00-\u9fff]{{1,2}}?)"
    r"(?=[，。、；！？,.;\s（(]|负责|确认|联系|处理|审批|说|已|将|会|在|的|来|提供|签字|和|与|发|$)"
)
_NAME_JA = re.compile(
    rf"(?<![\u4e00-\u9fff\u30a0-\u30ff])((?:[\u4e00-\u9fff々]{{1,5}}|[\u30a1-\u30fa\u30fc・]{{2,14}}))"
    rf"({'|'.join(HONORIFICS_JA)})"
)
_NOT_NAMES_JA = frozenset(
    words("""
    お客 皆 奥 神 王 患者 担当者 各位 両 同 貴 奥 担当 お客様 客 娘 息子 お母 お父 弊社 御社 学校
""")
)
_JA_CUE = re.compile(
    r"(?:担当者?|連絡先|責任者)(?:は|：|:)([\u4e00-\u9fff々]{2,5}|[\u30a1-\u30fa\u30fc・]{3,14})(?=です|[、。,，さ様]|$)"
)


def find_names(canvas: Canvas) -> None:
    """Names of people and organisations; a single word is one only behind a title or as a known given name."""
    text = canvas.text
    for match in _SEQUENCE.finditer(text):
        if " " in match[0] or _has_small_title(text, match.start()):
            _add_sequence(canvas, match.start(), match[0])
        elif match[0].rstrip("'’-.").removesuffix("'s").removesuffix("’s") in GIVEN_NAMES:
            _add(canvas, match.start(), match[0].rstrip("'’-.").removesuffix("'s").removesuffix("’s"))
    if not text.isascii() and canvas.language in ("zh", "ja"):
        _find_cjk(canvas)


def _find_cjk(canvas: Canvas) -> None:
    text = canvas.text
    if canvas.language == "zh":
        for match in _NAME_ZH.finditer(text):
            if (
                match[1]
                or match[2] not in ("总", "工")
                or text[match.end() : match.end() + 1] in "，。：、说的 要已让 "
            ):
                _add(canvas, match.start(), match[0])
        for match in _CUE_ZH.finditer(text):
            _add(canvas, match.start(1), match[1])
        return
    for match in _NAME_JA.finditer(text):
        if match[1] not in _NOT_NAMES_JA:
            _add(canvas, match.start(), match[1])
    for match in _JA_CUE.finditer(text):
        _add(canvas, match.start(1), match[1])


def _add(canvas: Canvas, start: int, name: str) -> None:
    form = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
    canvas.add(AtomClass.NAME, start, start + len(name), form)


def _add_sequence(canvas: Canvas, start: int, written: str) -> None:
    """Strip what begins the sentence, then judge what is left."""
    words = written.split(" ")
    titled = _has_small_title(canvas.text, start)
    inside = _inside_sentence(canvas.text, start)
    while words:
        bare = words[0].rstrip(".")
        if bare in TITLES:
            titled = True
        elif _ELIDED.match(words[0]) and not titled:
            pass
        elif (bare not in COMMON_WORDS and not (bare[0].islower() or bare == "&")) or titled:
            break
        inside = True
        start += len(words.pop(0)) + 1
    while words and (words[-1] in COMMON_WORDS or words[-1][0].islower()):
        words.pop()
    if not words:
        return
    name = " ".join(words)
    ending = name.endswith(("Inc.", "Ltd.", "Corp.", "S.A.", "S.L."))
    name = name if ending else name.rstrip(".'’-")
    for possessive in ("'s", "’s"):
        name = name.removesuffix(possessive)
    if _is_name(canvas, name.split(" "), titled=titled, inside=inside):
        _add(canvas, start, name)


def _is_name(canvas: Canvas, words: list[str], *, titled: bool, inside: bool) -> bool:
    if titled or (words[0] in GIVEN_NAMES and len(words) <= 4):
        return bool(words[0])
    if len(words) < 2:
        return False
    if words[-1] in ORGANISATION_ENDINGS:
        return True
    plain = not any(word in COMMON_WORDS for word in words)
    return plain and inside and canvas.language != "de" and len(words) <= 4


def _has_small_title(text: str, start: int) -> bool:
    """Whether a title that is written small stands right before."""
    before = text[max(0, start - 16) : start]
    return before[-1:] == " " and before.rstrip(" ").rpartition(" ")[2].lower() in TITLES_SMALL


def _inside_sentence(text: str, start: int) -> bool:
    """Whether a lower-case word, or a comma, stands right before."""
    before = text[max(0, start - 3) : start].rstrip(" ")
    return bool(before) and (before[-1].islower() or before[-1] in ",;") and text[start - 1] == " "
