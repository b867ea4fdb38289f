"""JSON as the API takes it: bytes to a value, or a refusal that names the place.

    StrictJsonRefused
    ├── Malformed            not JSON
    │   ├── NotUtf8
    │   └── ByteOrderMark
    ├── DuplicateKey         one object names a key twice
    ├── NonFiniteNumber      the token NaN, Infinity or -Infinity
    ├── TooDeep              more than DEPTH_MAX nested arrays and objects
    ├── TooManyKeys          more than KEY_COUNT_MAX keys in all objects together
    ├── LoneSurrogate        half of a surrogate pair, which no UTF-8 store can keep
    └── NumberOutOfRange     an integer beyond 2^53-1, a float that would become infinite

A path reads `$.messages[0].content`; `$` is the whole document.

The standard library's C scanner does the reading. Its hooks leave a `_Mark` where a rule is broken, and the place of
the mark in the tree is the path. The depth is measured before anything is parsed, because the scanner is recursive.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from threadmark.db import INT_RANGE, keeps_int

__all__ = [
    "DEPTH_MAX",
    "KEY_COUNT_MAX",
    "ByteOrderMark",
    "DuplicateKey",
    "LoneSurrogate",
    "Malformed",
    "NonFiniteNumber",
    "NotUtf8",
    "NumberOutOfRange",
    "StrictJsonRefused",
    "TooDeep",
    "TooManyKeys",
    "parse",
]

DEPTH_MAX = 64
KEY_COUNT_MAX = 10_000
#: No integer that is taken has more digits (or a sign); a longer one is not even converted.
INT_DIGITS_MAX = 17
#: A path is cut here: a key may be as long as a body.
PATH_CHARS_MAX = 200

# The closing quote is optional, so that the pattern matches at every quote and a hostile text is scanned once.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_MOVE = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_CLOSING = {b"[": "]", b"{": "}"}
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class StrictJsonRefused(ValueError):
    """This text is not what the API calls JSON; nothing was done with it."""

    def __init__(self, path: str, why: str) -> None:
        path = path if len(path) <= PATH_CHARS_MAX else path[:PATH_CHARS_MAX] + "…"
        super().__init__(f"{path}: {why}")
        self.path = path
        self.why = why


class Malformed(StrictJsonRefused):
    """Not JSON."""


class NotUtf8(Malformed):
    """Bytes that are not UTF-8."""


class ByteOrderMark(Malformed):
    """A byte order mark before the text."""


class DuplicateKey(StrictJsonRefused):
    """One object names a key twice: readers would disagree about its value."""


class NonFiniteNumber(StrictJsonRefused):
    """NaN and the infinities have no spelling in JSON."""


class TooDeep(StrictJsonRefused):
    """Nested deeper than DEPTH_MAX."""


class TooManyKeys(StrictJsonRefused):
    """More keys than KEY_COUNT_MAX."""


class LoneSurrogate(StrictJsonRefused):
    """Half of a surrogate pair."""


class NumberOutOfRange(StrictJsonRefused):
    """A number that would come back as another number."""


class _Mark:
    """Stands in a parsed tree where a rule is broken; `path` and `why` describe the break from there."""

    def __init__(self, refusal: type[StrictJsonRefused], why: str, path: str = "") -> None:
        self.refusal = refusal
        self.why = why
        self.path = path


def parse(raw: bytes) -> Any:
    """The value that `raw` spells. Raises StrictJsonRefused."""
    text = _text_of(raw)
    _check_depth(raw)
    return _Reading().value_of(text)


class _Reading:
    """The hooks of one document, and what they have seen so far."""

    def __init__(self) -> None:
        self._key_count = 0
        self._is_marked = False
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_constant=self._constant,
            parse_int=self._int,
            parse_float=self._float,
        )

    def tree_of(self, text: str) -> Any:
        """The parsed text, marks and all."""
        try:
            return self._decoder.decode(text)
        except json.JSONDecodeError as error:
            raise Malformed("$", f"not JSON: {error.msg}, line {error.lineno} column {error.colno}") from error

    def value_of(self, text: str) -> Any:
        value = self.tree_of(text)
        if self._is_marked:
            _raise_first(value)
        if self._key_count > KEY_COUNT_MAX:
            raise TooManyKeys("$", f"has {self._key_count} keys; at most {KEY_COUNT_MAX} are taken")
        if _SURROGATE_ESCAPE.search(text):
            _refuse_surrogates(value)
        return value

    def _object(self, pairs: list[tuple[str, Any]]) -> Any:
        self._key_count += len(pairs)
        value = dict(pairs)
        if len(value) == len(pairs):
            return value
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        return self._mark(DuplicateKey, "is named twice in one object", _member(twice))

    def _constant(self, token: str) -> _Mark:
        return self._mark(NonFiniteNumber, f"{token} is not a JSON number")

    def _int(self, digits: str) -> Any:
        # The length first: converting a very long integer is slow, and refused by Python with an error of its own.
        if len(digits) <= INT_DIGITS_MAX and keeps_int(value := int(digits)):
            return value
        return self._mark(NumberOutOfRange, f"is an integer beyond {INT_RANGE}; send it as text")

    def _float(self, digits: str) -> Any:
        value = float(digits)
        if math.isfinite(value):
            return value
        return self._mark(NumberOutOfRange, "is a number too large for a 64-bit float; send it as text")

    def _mark(self, refusal: type[StrictJsonRefused], why: str, path: str = "") -> _Mark:
        self._is_marked = True
        return _Mark(refusal, why, path)


def _text_of(raw: bytes) -> str:
    if raw.startswith((b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")):
        raise ByteOrderMark("$", "begins with a byte order mark; send UTF-8 without one")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise NotUtf8("$", f"is not UTF-8 at byte {error.start}") from error


def _check_depth(raw: bytes) -> None:
    # Most bodies have fewer brackets than a nesting that is refused needs.
    if raw.count(b"[") + raw.count(b"{") <= DEPTH_MAX:
        return
    brackets = _STRING.sub(b"", raw).translate(None, _NOT_BRACKETS)
    if max(accumulate(map(_MOVE.__getitem__, brackets)), default=0) > DEPTH_MAX:
        _raise_too_deep(raw)


def _raise_too_deep(raw: bytes) -> None:
    """Name the place: the text up to it, with a mark there and closed, is shallow enough to be parsed."""
    blanked = _STRING.sub(lambda string: b" " * len(string[0]), raw)
    opened: list[str] = []
    for bracket in _BRACKET.finditer(blanked):
        if (closing := _CLOSING.get(bracket[0])) is None:
            del opened[-1:]
        elif len(opened) < DEPTH_MAX:
            opened.append(closing)
        else:
            head = raw[: bracket.start()].decode() + "NaN" + "".join(reversed(opened))
            *_, (path, _mark) = _marks(_Reading().tree_of(head), "$")
            raise TooDeep(path, f"is nested deeper than {DEPTH_MAX}")


def _raise_first(value: Any) -> None:
    path, mark = next(_marks(value, "$"))
    raise mark.refusal(path + mark.path, mark.why)


def _marks(value: Any, path: str) -> Iterator[tuple[str, _Mark]]:
    """Every mark with its path. Recursive, over a tree whose depth was checked."""
    if isinstance(value, _Mark):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _marks(item, path + _member(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _marks(item, f"{path}[{index}]")


def _refuse_surrogates(value: Any, path: str = "$") -> None:
    if isinstance(value, str):
        if found := _SURROGATE.search(value):
            raise LoneSurrogate(path, f"holds a lone surrogate at code point {found.start()}")
    elif isinstance(value, dict):
        for key, item in value.items():
            if found := _SURROGATE.search(key):
                raise LoneSurrogate(path, f"has a key with a lone surrogate at code point {found.start()}")
            _refuse_surrogates(item, path + _member(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_surrogates(item, f"{path}[{index}]")


def _member(key: str) -> str:
    return f".{key}" if key.isidentifier() else f"[{json.dumps(key)}]"
