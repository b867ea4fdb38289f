"""Numbers as people write them: thousands, decimals and scale words in six languages, and one normal form."""

# ruff: noqa: PLR2004 - the numbers are the shapes of the values that are looked for

import re
import unicodedata

__all__ = ["NUMBER", "number_end", "plain_number", "scale_after", "shifted"]

_GROUPED = r"\d{1,3}(?:(?P<g>[,.'’\u00a0\u202f])\d{3})(?:(?P=g)\d{3}){0,6}(?!\d)(?:[.,]\d{1,9}(?![\d]))?"
_SPACED = r"\d{1,3}(?: \d{3}){1,6}(?![\d])(?:[.,]\d{1,9}(?![\d]))?"
_PLAIN = r"\d{1,30}(?:[.,]\d{1,12}(?![\d]))?"
NUMBER = re.compile(f"(?:{_GROUPED}|{_PLAIN})")
_NUMBER_WITH_SPACES = re.compile(f"(?:{_SPACED}|{_GROUPED}|{_PLAIN})")
#: Languages that write 1.234,5 (and group by blanks too).
DECIMAL_COMMA = frozenset({"de", "fr", "es"})

_THOUSAND, _MILLION, _MILLIARD = 3, 6, 9
_SCALES = {
    "k": _THOUSAND,
    "tsd": _THOUSAND,
    "thousand": _THOUSAND,
    "tausend": _THOUSAND,
    "mille": _THOUSAND,
    "mil": _THOUSAND,
    "m": _MILLION,
    "mio": _MILLION,
    "mn": _MILLION,
    "million": _MILLION,
    "millions": _MILLION,
    "millionen": _MILLION,
    "millón": _MILLION,
    "millones": _MILLION,
    "b": _MILLIARD,
    "bn": _MILLIARD,
    "mrd": _MILLIARD,
    "billion": _MILLIARD,
    "milliarde": _MILLIARD,
    "milliarden": _MILLIARD,
    "milliard": _MILLIARD,
    "milliards": _MILLIARD,
    "千": _THOUSAND,
    "万": 4,
    "萬": 4,
    "亿": 8,
    "億": 8,
}
#: Scales so short that they mean something else (metres, bytes) unless money stands beside them.
_MONEY_ONLY = frozenset({"m", "b"})
_SCALE = re.compile(r"[ \u00a0\u202f]?([A-Za-zóé]{1,10}(?![A-Za-z0-9_])|[千万萬亿億])\.?")


def number_end(text: str, start: int, language: str) -> int:
    """Where the number that starts at `start` ends; `start` where there is none."""
    pattern = _NUMBER_WITH_SPACES if language == "fr" else NUMBER
    match = pattern.match(text, start)
    return match.end() if match else start


def plain_number(written: str, language: str, *, comma_groups: bool | None = None) -> str:
    """The number with a decimal point, no grouping and no idle zeros: `1.234,50` becomes `1234.5`.

    `comma_groups`, where the context of the number shows it: commas group and points are decimal.
    """
    if written.isdigit() and written.isascii():
        return written.lstrip("0") or "0"
    number = unicodedata.normalize("NFKC", written)
    for blank in (" ", "'", "’"):
        number = number.replace(blank, "")
    point = _decimal_point(number, language, comma_groups)
    if point < 0:
        whole, fraction = number.replace(",", "").replace(".", ""), ""
    else:
        whole, fraction = number[:point].replace(",", "").replace(".", ""), number[point + 1 :].rstrip("0")
    whole = whole.lstrip("0") or "0"
    return f"{whole}.{fraction}" if fraction else whole


def _decimal_point(number: str, language: str, comma_groups: bool | None) -> int:
    """The index of the decimal mark, or -1: the last of two kinds, or the only one that cannot group."""
    comma, point = number.rfind(","), number.rfind(".")
    if comma >= 0 and point >= 0:
        return max(comma, point)
    mark = max(comma, point)
    if mark < 0 or number.count(number[mark]) > 1:
        return -1
    if len(number) - mark - 1 != 3 or mark > 3 or number.startswith("0"):
        return mark
    # Three digits behind a single mark: the language decides whether it groups.
    commas_group = language not in DECIMAL_COMMA if comma_groups is None else comma_groups
    return mark if commas_group == (point >= 0) else -1


def scale_after(text: str, end: int, *, money: bool) -> tuple[int, int]:
    """The power of ten of a scale word behind a number, and where the word ends; (0, `end`) without one."""
    match = _SCALE.match(text, end)
    if not match:
        return 0, end
    word = match[1].lower()
    power = _SCALES.get(word)
    if power is None or (word in _MONEY_ONLY and not money):
        return 0, end
    if len(word) == 1 and word.isascii() and match.start(1) != end:
        return 0, end
    stop = match.end() if word in ("mio", "mrd", "tsd") else match.end(1)
    return power, stop


def shifted(number: str, power: int) -> str:
    """The plain number times ten to the `power`."""
    if not power:
        return number
    whole, _, fraction = number.partition(".")
    digits = fraction.ljust(power, "0")
    whole = (whole + digits[:power]).lstrip("0") or "0"
    rest = digits[power:].rstrip("0")
    return f"{whole}.{rest}" if rest else whole
