"""JSON objects that a model writes, read strictly. Pure."""

import json
import math
from typing import Any, NoReturn

from threadmark.state.entries.value import ValueRefused, spell

__all__ = ["NotAnObject", "parse_object"]


class NotAnObject(ValueError):
    """The text is no JSON object that a journal can keep; the message says why, for the model to read."""


def parse_object(text: str) -> dict[str, Any]:
    """The object that `text` spells; an empty text is the empty object, as models write it for no arguments.

    Raises NotAnObject for anything else: bad JSON, another type, a key given twice, NaN and the like, too deep nesting,
    lone surrogates, integers that are not kept.
    """
    if not text.strip():
        return {}
    try:
        value = json.loads(text, object_pairs_hook=_without_twins, parse_constant=_no_constant, parse_float=_finite)
        spell(value, "arguments")
    except json.JSONDecodeError as error:
        raise NotAnObject(f"no valid JSON: {error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise NotAnObject("nested too deep") from error
    except ValueRefused as error:
        raise NotAnObject(str(error)) from error
    except NotAnObject:
        raise
    except ValueError as error:
        raise NotAnObject("an integer has too many digits") from error
    if not isinstance(value, dict):
        raise NotAnObject(f"a JSON {_JSON_TYPES[type(value)]}, not an object")
    return value


_JSON_TYPES = {list: "array", str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        twin = next(name for name in names if names.count(name) > 1)
        raise NotAnObject(f"the key {twin!r} is given twice")
    return value


def _no_constant(token: str) -> NoReturn:
    raise NotAnObject(f"{token} is no JSON")


def _finite(token: str) -> float:
    value = float(token)
    if not math.isfinite(value):
        raise NotAnObject(f"{token[:40]} is out of range")
    return value
