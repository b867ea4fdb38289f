"""Dates in words: the window of time that a question asks about, and whether a text says when. Rules only. Pure."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

__all__ = ["asks_for_time", "has_time_words", "window"]

Window = tuple[datetime, datetime]
_MONTH_NAMES = "january february march april may june july august september october november december"
_NAMES = _MONTH_NAMES.split()
_MONTHS = {name: at for at, name in enumerate(_NAMES, 1)} | {name[:3]: at for at, name in enumerate(_NAMES, 1)}
_MONTHS["sept"] = 9
_MONTH = "(" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
_ISO = re.compile(r"\b(\d{4})-(\d{2})(?:-(\d{2}))?\b")
_CJK = re.compile(r"(\d{4})\s*[年년]\s*(\d{1,2})\s*[月월](?:\s*(\d{1,2})\s*[日일])?")
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH},? (\d{{4}})\b")
_MONTH_FIRST = re.compile(rf"\b{_MONTH} (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})\b")
_MONTH_YEAR = re.compile(rf"\b{_MONTH},?(?: of)? (\d{{4}})\b")
_YEAR = re.compile(r"\b(?:in|during|of|since) (\d{4})\b")
_RELATIVE = re.compile(r"\b(yesterday|today|last week|last month|last year|this week|this month)\b")
_REACH = {
    "today": (0, 1),
    "yesterday": (1, 1),
    "this week": (7, 1),
    "last week": (14, 1),
    "this month": (31, 1),
    "last month": (62, 1),
    "last year": (730, 1),
}
#: People speak of a day shortly before it and for some weeks after it.
BEFORE, AFTER = timedelta(days=2), timedelta(days=21)
_ASKS = re.compile(r"^\W*(?:when|how long|since when|(?:on |in )?(?:what|which) (?:date|day|week|month|year|time))\b")
_TIME_WORDS = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|week|weekend|month|year|recently|just|\d{4}|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|" + "|".join(_NAMES) + r")s?\b"
)


def window(question: str, asked_at: datetime) -> tuple[datetime, datetime] | None:
    """The window that the question's first date opens, or None when it names none."""
    text = question.casefold()
    for pattern, opened in _FORMS:
        if found := pattern.search(text):
            return opened(found)
    if found := _RELATIVE.search(text):
        back, ahead = _REACH[found[1]]
        return asked_at - timedelta(days=back + 1), asked_at + timedelta(days=ahead)
    return None


def asks_for_time(question: str) -> bool:
    """Whether the answer is a date or a duration."""
    return _ASKS.search(question.casefold()) is not None


def has_time_words(text: str) -> bool:
    """Whether a text says when."""
    return _TIME_WORDS.search(text.casefold()) is not None


def _around(year: int, month: int, day: int | None) -> Window | None:
    try:
        first = datetime(year, month, day or 1, tzinfo=UTC)
        return first - BEFORE, first + timedelta(days=31 if day is None else 1) + AFTER
    except (ValueError, OverflowError):
        return None  # "31 February", "year 0000": no date, so no window


def _year(found: re.Match[str]) -> Window | None:
    try:
        return datetime(int(found[1]), 1, 1, tzinfo=UTC) - BEFORE, datetime(int(found[1]) + 1, 1, 1, tzinfo=UTC) + AFTER
    except (ValueError, OverflowError):
        return None


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Window | None]], ...] = (
    (_ISO, lambda m: _around(int(m[1]), int(m[2]), int(m[3]) if m[3] else None)),
    (_CJK, lambda m: _around(int(m[1]), int(m[2]), int(m[3]) if m[3] else None)),
    (_DAY_FIRST, lambda m: _around(int(m[3]), _MONTHS[m[2]], int(m[1]))),
    (_MONTH_FIRST, lambda m: _around(int(m[3]), _MONTHS[m[1]], int(m[2]))),
    (_MONTH_YEAR, lambda m: _around(int(m[2]), _MONTHS[m[1]], None)),
    (_YEAR, _year),
)
