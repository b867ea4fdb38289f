"""Values that a journal stores: JSON, exactly, or a refusal that names the place.

A value is `None`, `bool`, `int` (-(2^53-1) to 2^53-1), `float`, `str` (any code points except lone surrogates), `list`
or `dict` with `str` keys. Anything else would come back as something else (a tuple as a list, a set not at all), so it
is refused when saved. JSON has no form for non-finite floats; they are stored as `{"$float": "NaN"}`, `"Infinity"` or
`"-Infinity"`. A dict with one key that begins with `$` gets another `$` in front of it, so nothing collides.
"""

import math
from typing import Any

from threadmark.db.integers import INT_RANGE, keeps_int

__all__ = ["DEPTH_MAX", "ValueRefused", "check_text", "plain", "spell", "unspell"]

DEPTH_MAX = 64
_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class ValueRefused(ValueError):
    """This value would not come back unchanged; nothing was stored."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path} {why}")
        self.path = path
        self.why = why


def spell(value: object, path: str = "value") -> Any:
    """The plain JSON form of `value`; `unspell` restores an equal value.

    Raises ValueRefused, which names the path (`result.items[0]`), for a value that cannot be restored.
    """
    return _spell(value, path, DEPTH_MAX)


def unspell(value: Any) -> Any:
    """The value that `spell` encoded."""
    if isinstance(value, list):
        return [unspell(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        key, inner = next(iter(value.items()))
        if key == "$float":
            return _FLOATS[inner]
        if key.startswith("$"):
            return {key[1:]: unspell(inner)}
    return {key: unspell(item) for key, item in value.items()}


def plain(value: Any) -> Any:
    """A value as JSON readers see it: unchanged, except that non-finite floats stay encoded."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, dict) or value.keys() == {"$float"}:
        return value
    if len(value) == 1:
        key, inner = next(iter(value.items()))
        if key.startswith("$"):
            return {key[1:]: plain(inner)}
    return {key: plain(item) for key, item in value.items()}


def check_text(text: str, path: str) -> str:
    """Return `text`. Raises ValueRefused for a lone surrogate, which UTF-8 cannot encode."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueRefused(path, f"holds a lone surrogate at code point {error.start}") from error
    return text


def _spell(value: object, path: str, depth: int) -> Any:
    # Compare exact types: a subclass (an enum, an OrderedDict) would come back as its base.
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return check_text(value, path)  # type: ignore[arg-type]
    if kind is int:
        return _spell_int(value, path)  # type: ignore[arg-type]
    if kind is float:
        return _spell_float(value)  # type: ignore[arg-type]
    if depth == 0:
        raise ValueRefused(path, f"is nested deeper than {DEPTH_MAX}")
    if kind is list:
        return [_spell(item, f"{path}[{index}]", depth - 1) for index, item in enumerate(value)]  # type: ignore[arg-type, var-annotated]
    if kind is dict:
        return _spell_dict(value, path, depth)  # type: ignore[arg-type]
    raise ValueRefused(path, f"is a {kind.__name__}; a value is None, bool, int, float, str, list or dict")


def _spell_int(value: int, path: str) -> int:
    if not keeps_int(value):
        raise ValueRefused(path, f"is an integer beyond {INT_RANGE}; keep it as text")
    return value


def _spell_float(value: float) -> Any:
    if math.isfinite(value):
        return value
    return {"$float": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}


def _spell_dict(value: dict[object, object], path: str, depth: int) -> dict[str, Any]:
    spelled: dict[str, Any] = {}
    for key, item in value.items():
        if type(key) is not str:
            raise ValueRefused(f"{path}[{key!r}]", f"has a key of type {type(key).__name__}; keys are str")
        spelled[check_text(key, f"{path} key")] = _spell(item, f"{path}.{key}", depth - 1)
    if len(spelled) == 1:
        (only,) = spelled
        if only.startswith("$"):
            return {"$" + only: spelled[only]}
    return spelled
