"""Reading plain JSON values as declared types; a refusal names the place in the whole body."""

from typing import Any, TypeVar

import msgspec

from threadmark.app.http.allowed_values import with_allowed_values
from threadmark.app.http.body_errors import BodyRefused

__all__ = ["read_as"]

T = TypeVar("T")


def read_as(kind: type[T], value: Any, path: str) -> T:
    """`value`, found at `path` (`$` is the body), as a `kind`. Raises BodyRefused with the exact place."""
    try:
        return msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError as error:
        why, _, place = str(error).partition(" - at `$")
        inside = place.rstrip("`")
        raise BodyRefused(path + inside, with_allowed_values(why, kind, f"${inside}")) from error
