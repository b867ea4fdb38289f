"""Names in a query: a parameter that comes several times, or once with a JSON list, as some SDKs send it."""

import msgspec
from litestar.exceptions import ValidationException

__all__ = ["names_of"]


def names_of(parameter: str, values: list[str] | None, known: tuple[str, ...]) -> list[str]:
    """The names that are given, each once, in their order among the known ones; an empty one is none.

    Raises ValidationException for a name that is not known.
    """
    given: list[str] = []
    for value in values or []:
        if not value.startswith("["):
            given.append(value)
            continue
        try:
            given += msgspec.json.decode(value, type=list[str])
        except msgspec.MsgspecError:
            given.append(value)
    found = {name for name in given if name}
    if not found <= set(known):
        raise ValidationException(extra=[{"key": parameter, "message": f"is none of {', '.join(known)}"}])
    return [name for name in known if name in found]
