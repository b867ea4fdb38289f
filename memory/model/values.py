"""What may be stored: texts, labels and JSON values that come back exactly as they were given, or a refusal."""

import json
import math
import unicodedata
from typing import Any

from threadmark.db.integers import INT_RANGE, keeps_int
from threadmark.memory.errors import Refused

__all__ = [
    "LABEL_LENGTH_MAX",
    "TEXT_LENGTH_MAX",
    "canonical",
    "check_json",
    "check_label",
    "check_text",
    "is_blank",
    "load",
]

TEXT_LENGTH_MAX = 32_768
LABEL_LENGTH_MAX = 256
JSON_DEPTH_MAX = 64
JSON_LENGTH_MAX = 262_144


def is_blank(text: str) -> bool:
    """Whether nothing would be seen: spaces, controls and zero-width signs only."""
    return all(sign.isspace() or unicodedata.category(sign) in {"Cc", "Cf", "Zl", "Zp", "Zs"} for sign in text)


def check_text(text: object, path: str, length_max: int = TEXT_LENGTH_MAX) -> str:
    """`text` itself. Raises Refused for what is no text, blank, too long, or holds a lone surrogate."""
    if not isinstance(text, str):
        raise Refused(path, "is not a text")
    if len(text) > length_max:
        raise Refused(path, f"has {len(text)} characters; at most {length_max} are kept")
    check_code_points(text, path)
    if is_blank(text):
        raise Refused(path, "is blank")
    return text


def check_label(label: object, path: str) -> str:
    """`label` itself. Raises Refused for a blank or long one, and for one with a control character."""
    text = check_text(label, path, LABEL_LENGTH_MAX)
    if any(unicodedata.category(sign) == "Cc" for sign in text):
        raise Refused(path, "holds a control character")
    return text


def check_code_points(text: str, path: str) -> None:
    """Raise Refused for a lone surrogate, which no UTF-8 store can keep."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Refused(path, f"holds a lone surrogate at code point {error.start}") from error


def check_json(value: object, path: str) -> Any:
    """`value` itself. Raises Refused, naming the place, for what JSON would not give back equal."""
    _check(value, path, JSON_DEPTH_MAX)
    if len(canonical(value)) > JSON_LENGTH_MAX:
        raise Refused(path, f"is longer than {JSON_LENGTH_MAX} characters of JSON")
    return value


def canonical(value: Any) -> str:
    """One spelling for each JSON value: what digests and equality are computed over, and what a column keeps.

    NUL is spelled `\\u0000`, so a text column of PostgreSQL takes it.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def load(text: str) -> Any:
    """The value that `canonical` spelled."""
    return json.loads(text)


def _check(value: object, path: str, depth: int) -> None:
    if depth < 0:
        raise Refused(path, f"is nested deeper than {JSON_DEPTH_MAX}")
    if type(value) is list:
        for at, item in enumerate(value):
            _check(item, f"{path}[{at}]", depth - 1)
    elif type(value) is dict:
        for key, item in value.items():
            if not isinstance(key, str):
                raise Refused(path, "has a key that is not a text")
            check_code_points(key, path)
            _check(item, f"{path}.{key}", depth - 1)
    else:
        _check_scalar(value, path)


def _check_scalar(value: object, path: str) -> None:
    # Exact types: a subclass (an enum, a numpy number) would come back as its base.
    if value is None or type(value) is bool:
        return
    if type(value) is str:
        check_code_points(value, path)
    elif type(value) is int:
        if not keeps_int(value):
            raise Refused(path, f"is an integer beyond {INT_RANGE}; keep it as text")
    elif type(value) is float:
        if not math.isfinite(value):
            raise Refused(path, "is not a finite number")
    else:
        raise Refused(path, f"is a {type(value).__name__}, which JSON has no form for")
