"""Finders of money, percentages, quantities, versions, IP addresses, phone numbers and plain numbers."""

# ruff: noqa: PLR2004 - the numbers are the shapes of the values that are looked for

import re

from threadmark.compaction.atoms.atom import AtomClass
from threadmark.compaction.atoms.canvas import Canvas
from threadmark.compaction.atoms.measures import CURRENCIES, CURRENCY_SIGNS, UNITS
from threadmark.compaction.atoms.numerals import number_end, plain_number, scale_after, shifted
from threadmark.compaction.keyword_prefilter import word_lead, words

__all__ = [
    "find_list_markers",
    "find_named_versions",
    "find_numbers",
    "find_signed_money",
    "find_versions_and_addresses",
]

_PHONE_MARKS = frozenset("- /")
_INSIDE_NUMBERS = frozenset(".,'’ \u00a0\u202f")
_SIGN = re.compile(r"[$€£¥￥₹₩][ \u00a0]?(?=-?\d)")
_CODE = re.compile(
    word_lead(
        words("""
    USD EUR GBP JPY CNY RMB CHF INR CAD AUD SEK MXN BTC
""")
    )
    + r"[ \u00a0]?(?=-?\d)"
)
_SIGN_PREFIX = re.compile(r"(?:US|CA|A|HK|NZ)\Z")
_PREFIXES = {"CA": "CAD", "A": "AUD", "HK": "HKD", "NZ": "NZD"}
_IP = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?![\d.]\d|\d)(?:/\d{1,2}(?!\d)|:\d{2,5}(?!\d))?")
_TRIPLE = re.compile(
    r"\d{1,5}\.\d{1,5}(?:\.\d{1,6}){1,2}(?:[-+.]?(?:rc|alpha|beta|dev|post|a|b|pre|preview)[.\-]?\d{0,4})?(?:\+[\w.]{1,20})?(?![A-Za-z0-9_À-ɏ])"
)
_V = re.compile(
    r"[vV](?<![A-Za-z0-9_]\w)\d{1,5}(?:\.\d{1,6}){0,4}(?:[-.]?(?:rc|alpha|beta|dev|post|a|b)[.\-]?\d{0,4})?(?![A-Za-z0-9_À-ɏ])(?!\.\d)"
)
_VERSIONED = (
    "Version version Versión versión Release release 版本 バージョン Ver Ver. Python Node Node.js Java PHP Ruby Go Rust"
    " PostgreSQL Postgres MySQL Redis Django Ubuntu Debian Android iOS macOS Windows Kubernetes Docker TypeScript React"
    " Vue Angular Terraform nginx Elasticsearch Kafka SQLite"
)
_NAMED_VERSION = re.compile(
    word_lead(_VERSIONED.split()) + r"[ :：]?(?P<v>\d{1,4}(?:\.\d{1,4}){0,3}(?:-?(?:rc|beta|alpha)\.?\d{0,2})?)"
    r"(?![A-Za-z0-9_À-ɏ%])(?!\.\d)(?![,.]?\d)"
)
_PHONE_PLUS = re.compile(
    r"\+(?<![\w)]\+)\d{1,3}[ \-]?(?:\(\d{1,5}\)[ \-]?)?\d{1,5}(?:[ \-./]?\d{1,5}){1,6}(?![A-Za-z0-9_À-ɏ])"
)
_PHONE_PAREN = re.compile(r"\((?<![\w)]\()0?\d{2,5}\)[ \-]?\d{3,5}(?:[ \-]?\d{2,5}){0,3}(?![A-Za-z0-9_À-ɏ])")
_PHONE_LOCAL = re.compile(
    r"(?:\d{3}-\d{4}-\d{4}|\d{2,4}-\d{2,4}-\d{4}|\d{3}-\d{3}-\d{4}|\d{3}-\d{4}|0\d(?:[ .]\d{2}){4}|0\d{2,4}[ /-]\d{5,9}"
    r"|0\d{2,4}[ /-]\d{2,4}(?:[ -]\d{2,4}){1,3}|1[3-9]\d{9}|[689]\d{2}(?: \d{2}){3}|[689]\d{2} \d{3} \d{3})"
    r"(?![\d\-]|[ .]?\d)"
)
_LIST_MARKER = re.compile(r"(?m)^[ \t]{0,12}+\d{1,3}[.)、](?=[ \t])")
_PERCENT = re.compile(
    r"[ \u00a0\u202f]?(?:[%％]|(?:percent|per cent|Prozent|pour cent|por ciento|パーセント|百分比)"
    r"(?![A-Za-z0-9_À-ɏ])|pct\b|个百分点)|(?:‰)"
)
_UNIT = re.compile(
    r"(?P<blank>[ \u00a0\u202f-]?)(?P<unit>°[CF]?|[A-Za-zÀ-ɏµ]{1,16}(?:\$|[²³])?(?:/[A-Za-z]{1,8})?|[$€£₹％℃])"
    r"(?![A-Za-zÀ-ɏ])"
)
_UNIT_CJK = re.compile(r" ?([\u3041-\u30ff\u4e00-\u9fff]{1,7})")
_OF_MONEY = re.compile(r" (?:d'|de |US |US-)?(?=\w)")
#: What may belong to a number: a letter, a mark of a currency or a share, at most a blank away.
_MORE_FOLLOWS = re.compile(r"[ \u00a0\u202f\-]?[A-Za-z_À-ɏ\u3041-\u9fff°%％‰$€£₹℃µ]")
_EXPONENT = re.compile(r"[eE][+-]?\d{1,4}(?![A-Za-z0-9_À-ɏ])")
_NOT_AFTER_NUMBER = frozenset(["a", "an", "in", "on", "i"])


def find_versions_and_addresses(canvas: Canvas) -> None:
    """IP addresses (hosts), versions and phone numbers: all that has more than one dot, or is too long for a number."""
    text = canvas.text
    for match in _PHONE_PLUS.finditer(text) if "+" in text else ():
        _add_phone(canvas, match.start(), match.end(), digits_min=8)
    for match in _PHONE_PAREN.finditer(text) if "(" in text else ():
        _add_phone(canvas, match.start(), match.end(), digits_min=7)
    for match in _V.finditer(text):
        canvas.add(AtomClass.VERSION, match.start(), match.end(), match[0][1:].lower())
    done = 0
    for at, after in canvas.numbers():
        if at < done:
            continue
        mark = text[after : after + 1]
        if mark == ".":
            done = _dotted_at(canvas, at) or (_phone_at(canvas, at) if text[at] == "0" else 0) or done
        elif mark in _PHONE_MARKS or after - at == 11:
            done = _phone_at(canvas, at) or done


def find_named_versions(canvas: Canvas) -> None:
    """Versions that a word announces: `version 2`, `Python 3.11`."""
    for match in _NAMED_VERSION.finditer(canvas.text):
        canvas.add(AtomClass.VERSION, match.start("v"), match.end("v"), match["v"].lower())


def _dotted_at(canvas: Canvas, at: int) -> int:
    text = canvas.text
    if (match := _IP.match(text, at)) and all(int(part) <= 255 for part in match.groups()):
        canvas.add(AtomClass.HOST, at, match.end(), match[0])
        return match.end()
    if (match := _TRIPLE.match(text, at)) and not _is_grouped(match[0]):
        canvas.add(AtomClass.VERSION, at, match.end(), match[0].lower())
        return match.end()
    return 0


def _is_grouped(written: str) -> bool:
    """`1.234.567` groups thousands."""
    parts = written.split(".")
    return len(parts) > 2 and all(part.isdigit() and len(part) == 3 for part in parts[1:]) and len(parts[0]) <= 3


def _phone_at(canvas: Canvas, at: int) -> int:
    match = _PHONE_LOCAL.match(canvas.text, at)
    if match and (at == 0 or canvas.text[at - 1] not in "-#/.,$€£¥+"):
        return _add_phone(canvas, at, match.end(), digits_min=7)
    return 0


def _add_phone(canvas: Canvas, start: int, end: int, *, digits_min: int) -> int:
    written = canvas.text[start:end]
    digits = "".join(char for char in written if char.isdigit())
    if not digits_min <= len(digits) <= 15:
        return 0
    form = f"+{digits}" if written[0] == "+" else digits
    return end if canvas.add(AtomClass.PHONE, start, end, form) else 0


def find_list_markers(canvas: Canvas) -> None:
    """The numbers of numbered lists are order, not facts: no finder may take them."""
    for match in _LIST_MARKER.finditer(canvas.text):
        canvas.bar(match.start(), match.end())


def find_signed_money(canvas: Canvas) -> None:
    """Money whose currency stands before the number: `$47,500`, `EUR 1.2 million`, `US$5k`."""
    text = canvas.text
    for match in _SIGN.finditer(text) if "$" in text or not canvas.is_ascii else ():
        at = match.start()
        prefix = _SIGN_PREFIX.search(text[max(0, at - 2) : at])
        named = _PREFIXES.get(prefix[0]) if prefix else None
        currency = named or ("CNY" if text[at] == "¥" and canvas.language == "zh" else CURRENCY_SIGNS[text[at]])
        start = at - len(prefix[0]) if prefix else at
        _add_signed(canvas, start, match.end(), currency, commas=True if text[at] in "$£" else None)
    for match in _CODE.finditer(text):
        _add_signed(canvas, match.start(), match.end(), CURRENCIES[match[0].strip().lower()], commas=None)


def _add_signed(canvas: Canvas, start: int, at: int, currency: str, *, commas: bool | None) -> None:
    text = canvas.text
    minus = text[at] == "-"
    end = number_end(text, at + minus, canvas.language)
    if end == at + minus:
        return
    power, stop = scale_after(text, end, money=True)
    amount = shifted(plain_number(text[at + minus : end], canvas.language, comma_groups=commas), power)
    negative = minus or text[start - 1 : start] in ("-", "−")
    canvas.add(AtomClass.MONEY, start, stop, f"{currency} {'-' if negative else ''}{amount}")


def find_numbers(canvas: Canvas) -> None:
    """Every number that no other finder took, with what follows it: a percent sign, a currency, a unit, or nothing."""
    text = canvas.text
    done = 0
    for at, after in canvas.numbers():
        if at < done or not canvas.is_free(at, after):
            continue
        # Without a mark between digits the number ends with them.
        end = number_end(text, at, canvas.language) if text[after : after + 1] in _INSIDE_NUMBERS else after
        if canvas.is_free(at, end):
            done = _number_at(canvas, at, end)


def _number_at(canvas: Canvas, at: int, end: int) -> int:
    text = canvas.text
    before = text[at - 1] if at else " "
    start = at - 1 if before in "-−" and (at == 1 or text[at - 2] in " \t\n(（:：=[,，") else at
    sign = "-" if start < at else ""
    if not _MORE_FOLLOWS.match(text, end):
        canvas.add(AtomClass.NUMBER, start, end, sign + plain_number(text[at:end], canvas.language))
        return end
    if percent := _PERCENT.match(text, end):
        number = plain_number(text[at:end], canvas.language, comma_groups=None)
        canvas.add(AtomClass.PERCENT, start, percent.end(), f"{sign}{number}%")
        return percent.end()
    # 千 is a thousand, and the beginning of 千克, 千米 and 千瓦时.
    is_unit = text[end : end + 1] == "千" and text[end : end + 2] in UNITS
    power, scaled_end = (0, end) if is_unit else scale_after(text, end, money=False)
    measured = _measure(canvas, scaled_end, joined=power > 0)
    if measured is None and not power:
        power_money, scaled = scale_after(text, end, money=True)
        money = _measure(canvas, scaled, joined=True) if power_money else None
        if money and money[0] is AtomClass.MONEY:
            power, scaled_end, measured = power_money, scaled, money
    if measured:
        cls, form, stop = measured
        commas = False if form == "EUR" and canvas.language != "en" else None
        number = sign + shifted(plain_number(text[at:end], canvas.language, comma_groups=commas), power)
        canvas.add(cls, start, stop, f"{form} {number}" if cls is AtomClass.MONEY else f"{number} {form}")
        return stop
    if power == 0 and (tail := _EXPONENT.match(text, end)):
        canvas.add(AtomClass.NUMBER, start, tail.end(), text[start : tail.end()].lower())
        return tail.end()
    if end < len(text) and (text[end].isascii() and (text[end].isalpha() or text[end] == "_")) and not power:
        return end  # the head of some token that is no number: 3rd, 2x4, 10k_rows
    number = sign + shifted(plain_number(text[at:end], canvas.language), power)
    canvas.add(AtomClass.NUMBER, start, scaled_end if power else end, number)
    return scaled_end


def _measure(canvas: Canvas, end: int, *, joined: bool) -> tuple[AtomClass, str, int] | None:
    """The currency or unit behind a number: its class, its form and where it ends."""
    text = canvas.text
    if joined and (link := _OF_MONEY.match(text, end)) and link.end() > end + 1:
        end = link.end() - 1 if text[link.end() - 1] == " " else link.end()
    latin = _UNIT.match(text, end)
    return _latin_measure(latin) if latin else _cjk_measure(text, end)


def _latin_measure(match: re.Match[str]) -> tuple[AtomClass, str, int] | None:
    """`kg`, `dollars`, and of a rate (`$/month`, `km/h`) the whole where it is a unit, its first word where not."""
    word = match["unit"].lower()
    base = word.split("/")[0]
    for each, end in ((word, match.end()), (base, match.start("unit") + len(base))):
        if each in CURRENCIES and match["blank"] != "-":
            return AtomClass.MONEY, CURRENCIES[each], end
        if each in UNITS and each not in _NOT_AFTER_NUMBER:
            return AtomClass.QUANTITY, UNITS[each], end
    return None


def _cjk_measure(text: str, end: int) -> tuple[AtomClass, str, int] | None:
    """The longest currency or counter that the characters begin with."""
    match = _UNIT_CJK.match(text, end)
    for length in range(len(match[1]) if match else 0, 0, -1):
        word = text[match.start(1) : match.start(1) + length] if match else ""
        stop = end + len(match[0]) - len(match[1]) + length if match else end
        if word in CURRENCIES:
            return AtomClass.MONEY, CURRENCIES[word], stop
        if word in UNITS:
            return AtomClass.QUANTITY, UNITS[word], stop
    return None
