"""Finders of dates and times of day, each with an ISO-like normal form; what is not said stays open (`--12-04`)."""

# ruff: noqa: PLR2004 - the numbers are the shapes of the values that are looked for

import re
from collections.abc import Callable

from threadmark.compaction.atoms.atom import AtomClass
from threadmark.compaction.atoms.calendar_words import MONTHS
from threadmark.compaction.atoms.canvas import Canvas
from threadmark.compaction.keyword_prefilter import word_lead

__all__ = ["find_moments"]

_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?![\d\-])")
_YMD = re.compile(r"(\d{4})([/.])(\d{1,2})\2(\d{1,2})(?![\d/])")
_DMY = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})(?![\w/])(?!\.\d)")
_DM_DOT = re.compile(r"(\d{1,2})\.(\d{1,2})\.(?!\d)")
_CJK = re.compile(r"(?:(\d{4})\s?年)?\s?(?:(\d{1,2})\s?月(?:\s?(\d{1,2})\s?[日号號]|(?![\d個个])))?")
_DAY_MONTH = re.compile(
    r"(\d{1,2})(?:st|nd|rd|th|er|\.|º)?(?:\s(?:of|de)\s|[\s-])"
    r"([A-Za-zäéûÀ-ɏ]{3,10}+)\.?(?:(?:\sde\s|\sdel\s|,?\s|-)(\d{4})(?!\d))?"
)
_YEAR_MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])(?![\d\-])")
_MONTH_END = r"(?![A-Za-z0-9_À-ɏ])\.?(?: de(?= \d{4}))?"
_MONTH_WORD = re.compile(word_lead(name.capitalize() for name in MONTHS) + _MONTH_END)
#: French and Spanish write months small.
_MONTH_WORD_SMALL = re.compile(word_lead([*MONTHS, *(name.capitalize() for name in MONTHS)]) + _MONTH_END)
_AFTER_MONTH = re.compile(
    r"[ \u00a0](?:(\d{1,2})(?:st|nd|rd|th)?(?:,? (\d{4})(?!\d))?(?![\d:.,%]\d|\d|[:%])|(\d{4})(?!\d))"
)
_CLOCK = re.compile(
    r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d{1,9})?)?(?![\d:])(?:\s?([AaPp])(?:\.[Mm]\.|[Mm]\b))?"
    r"(?:\s?(Z\b|UTC(?:[+-]\d{1,2})?|GMT|CES?T|E[SD]T|P[SD]T|JST|MESZ|MEZ|[+-]\d{2}:?\d{2}(?!\d)))?(?:\s?(Uhr)\b)?"
)
_AM_PM = re.compile(r"(\d{1,2})\s?([AaPp])(?:\.[Mm]\.|[Mm]\b)(?: (UTC|GMT|CES?T|E[SD]T|P[SD]T))?")
_H_FRENCH = re.compile(r"(\d{1,2})\s?h\s?(\d{2})(?![\w])")
#: A bare hour is a length (`3h`) but behind a word of time, or behind another hour of the same line.
_HOUR_FRENCH = re.compile(r"(\d{1,2})\s?h(?![\w])")
_BEFORE_HOUR_FRENCH = re.compile(
    r"(?:\b(?:à|vers|dès|avant|après|jusqu'à|entre)|\d{1,2}\s?h\s?\d{0,2} (?:et|à|-|–)) \Z",
    re.IGNORECASE,
)
_UHR = re.compile(r"(\d{1,2})(?:[.:](\d{2}))?\sUhr\b")
_POINT_CJK = re.compile(r"(\d{1,2})\s?[点點时時](?!间|間|候|数|数|目|ほど)(?:(\d{1,2})分|(半))?")
_ZONE_TEXT = re.compile(r"T(\d{2}):(\d{2})(?::(\d{2})(?:\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?")
_HALF_DAYS = {"下午": 12, "晚上": 12, "午後": 12, "夜": 12, "上午": 0, "早上": 0, "午前": 0, "凌晨": 0, "朝": 0}


def find_moments(canvas: Canvas) -> None:
    """All dates and times; a moment like `2026-12-04T10:00Z` gives a date and a time."""
    text = canvas.text
    done = 0
    for at, after in canvas.numbers():
        if at >= done and after - at <= 4 and text[at - 1 : at] != ".":
            mark = text[after : after + 1]
            # Behind a blank stands a word: most words are no month and no hour.
            finders = _BY_WORD.get(text[after + 1 : after + 2], ()) if mark in _BLANKS else _BY_NEXT.get(mark, ())
            for find in finders:
                end = find(canvas, at)
                if end:
                    done = end
                    break
    _month_first(canvas)


def _numeric_date(canvas: Canvas, at: int) -> int:  # noqa: PLR0911 - one for each way to write it
    text = canvas.text
    if match := _ISO.match(text, at):
        end = _add_date(canvas, at, match.end(), match[1], match[2], match[3])
        return _zone_time(canvas, end) if end else 0
    if match := _YMD.match(text, at):
        return _add_date(canvas, at, match.end(), match[1], match[3], match[4])
    if match := _DMY.match(text, at):
        return _day_month_year(canvas, at, match)
    if (match := _CJK.match(text, at)) and match.end() > at and (match[1] or match[2]):
        if match[2] is None and match[1] is None:
            return 0
        end = match.end()
        while text[end - 1].isspace():
            end -= 1
        return _add_date(canvas, at, end, match[1], match[2], match[3])
    if match := _YEAR_MONTH.match(text, at):
        return _add_date(canvas, at, match.end(), match[1], match[2], None)
    if canvas.language == "de" and (match := _DM_DOT.match(text, at)):
        return _add_date(canvas, at, match.end(), None, match[2], match[1])
    return 0


def _day_month_year(canvas: Canvas, at: int, match: re.Match[str]) -> int:
    """`04.12.2026` has the day first, `12/04/2026` the month where the language is English and the day else."""
    first, mark, second, year = match[1], match[2], match[3], match[4]
    if len(year) == 2 and (mark == "-" or (mark == "." and canvas.language == "en")):
        return 0
    year = year if len(year) == 4 else f"20{year}"
    month_first = mark == "/" and canvas.language == "en" and int(first) <= 12
    if mark == "/" and int(second) > 12:
        month_first = True
    day, month = (second, first) if month_first else (first, second)
    return _add_date(canvas, at, match.end(), year, month, day)


def _add_date(canvas: Canvas, start: int, end: int, year: str | None, month: str | None, day: str | None) -> int:
    """Keep the date if there is such a day; its end, or 0."""
    if (month and not 1 <= int(month) <= 12) or (day and not 1 <= int(day) <= 31):
        return 0
    if year and not 1500 <= int(year) <= 2999:
        return 0
    form = f"{int(year):04d}" if year else "-"
    if month:
        form += f"-{int(month):02d}"
    if day:
        form += f"-{int(day):02d}"
    return end if canvas.add(AtomClass.DATE, start, end, form) else 0


def _zone_time(canvas: Canvas, end: int) -> int:
    """The time that an ISO date carries behind its `T`; where the whole moment ends."""
    match = _ZONE_TEXT.match(canvas.text, end)
    if match is None:
        return end
    _add_time(canvas, end + 1, match.end(), int(match[1]), match[2], match[3], match[4])
    return match.end()


def _time_of_day(canvas: Canvas, at: int) -> int:  # noqa: PLR0911 - one for each way to write it
    text = canvas.text
    if match := _CLOCK.match(text, at):
        hour = _twelve(int(match[1]), match[4]) if match[4] else int(match[1])
        start, hour = _half_day(text, at, hour) if not match[4] else (at, hour)
        return _add_time(canvas, start, match.end(), hour, match[2], match[3], match[5])
    if match := _AM_PM.match(text, at):
        return _add_time(canvas, at, match.end(), _twelve(int(match[1]), match[2]), "00", None, match[3])
    if match := _UHR.match(text, at):
        return _add_time(canvas, at, match.end(), int(match[1]), match[2] or "00", None, None)
    if match := _H_FRENCH.match(text, at):
        return _add_time(canvas, at, match.end(), int(match[1]), match[2], None, None)
    match = _HOUR_FRENCH.match(text, at)
    if match and canvas.language == "fr" and _BEFORE_HOUR_FRENCH.search(text[max(0, at - 16) : at]):
        return _add_time(canvas, at, match.end(), int(match[1]), "00", None, None)
    if match := _POINT_CJK.match(text, at):
        if match[0][-1] in "点點" and canvas.language == "ja":
            return 0
        start, hour = _half_day(text, at, int(match[1]))
        return _add_time(canvas, start, match.end(), hour, match[2] or ("30" if match[3] else "00"), None, None)
    return 0


def _twelve(hour: int, half: str) -> int:
    return hour % 12 + (12 if half in "pP" else 0)


def _half_day(text: str, at: int, hour: int) -> tuple[int, int]:
    """A word such as 下午 before the time belongs to it and moves the hour."""
    for word, hours in _HALF_DAYS.items():
        if text.startswith(word, at - len(word)) and at >= len(word) and hour <= 12:
            return at - len(word), hour % 12 + hours if hours else hour
    return at, hour


def _add_time(
    canvas: Canvas, start: int, end: int, hour: int, minute: str, second: str | None, zone: str | None
) -> int:
    if hour > 24 or int(minute) > 59 or (second and int(second) > 59):
        return 0
    form = f"{hour:02d}:{int(minute):02d}"
    if second and int(second):
        form += f":{int(second):02d}"
    if zone:
        form += "Z" if zone in ("Z", "UTC", "GMT", "+00:00", "+0000") else zone
    return end if canvas.add(AtomClass.TIME, start, end, form) else 0


def _day_month(canvas: Canvas, at: int) -> int:
    """`4 December 2026`, `4. Dezember`, `4 de diciembre de 2026`."""
    match = _DAY_MONTH.match(canvas.text, at)
    if match is None:
        return 0
    month = MONTHS.get(match[2].lower())
    if month is None or not 1 <= int(match[1]) <= 31:
        return 0
    end = match.end()
    if not match[3] and canvas.text[end - 1] == ".":
        end -= 1  # more often the full stop of the sentence than of a shortened month
    return _add_date(canvas, at, end, match[3], str(month), match[1])


def _month_first(canvas: Canvas) -> None:
    """`December 4, 2026`, `Dec 4`, `March 2026`, `décembre 2026`."""
    text = canvas.text
    pattern = _MONTH_WORD_SMALL if canvas.language in ("fr", "es") else _MONTH_WORD
    for match in pattern.finditer(text):
        word = match[0].removesuffix(" de").rstrip(".")
        month = MONTHS[word.lower()]
        after = _AFTER_MONTH.match(text, match.end())
        if after is None or (word[0].islower() and after[1]) or not canvas.is_free(match.start(), after.end()):
            continue
        year = after[2] or after[3]
        _add_date(canvas, match.start(), after.end(), year, str(month), after[1])


#: What may begin with digits, by the character behind them: most numbers are no moment, and cost one look.
_BY_NEXT: dict[str, tuple[Callable[[Canvas, int], int], ...]] = {
    "-": (_numeric_date, _day_month),
    "/": (_numeric_date,),
    ".": (_numeric_date, _time_of_day, _day_month),
    ":": (_time_of_day,),
    **dict.fromkeys("年月", (_numeric_date,)),
    **dict.fromkeys("点點時时", (_time_of_day,)),
    **dict.fromkeys("hapAP", (_time_of_day,)),
    **dict.fromkeys("snrteº", (_day_month,)),
}
_BLANKS = frozenset(" \u00a0\u202f\t\n")
#: The same by the character behind a blank: that of a month, of "of" and "de", of an hour.
_BY_WORD: dict[str, tuple[Callable[[Canvas, int], int], ...]] = {
    **dict.fromkeys(
        {initial for month in MONTHS for initial in (month[0], month[0].upper())} | set("od"), (_day_month,)
    ),
    **dict.fromkeys("aApPhU", (_time_of_day, _day_month)),
    **dict.fromkeys("点點時时", (_time_of_day,)),
    **dict.fromkeys("年月", (_numeric_date,)),
}
