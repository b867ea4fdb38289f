"""Query parameters: one that the route does not take is refused, because ignoring it would answer another question, and
names that come several times, or once with a JSON list, as some SDKs send them."""

from collections.abc import Iterable

import msgspec
from litestar import Litestar
from litestar.connection import ASGIConnection
from litestar.exceptions import ValidationException
from litestar.handlers import BaseRouteHandler
from litestar.routes import HTTPRoute
from msgspec import Meta

__all__ = ["UnknownParameter", "learn_parameters", "names_of", "one_of", "refuse_unknown"]

_OPT = "parameters"
#: A name is cut here: it is the client's text.
_NAME_CHARS_MAX = 100


class UnknownParameter(Exception):
    """The query names a parameter that the route does not take."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name}: unknown query parameter")
        self.path = name


def learn_parameters(app: Litestar) -> None:
    """Note, in the `opt` of every route, which parameters its handler and the handler's dependencies take."""
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for handler, model in route.route_handler_map.values():
                handler.opt[_OPT] = frozenset(each.field_alias for each in model.expected_query_params)


async def refuse_unknown(connection: "ASGIConnection", handler: BaseRouteHandler) -> None:  # type: ignore[type-arg]
    """A Litestar guard. Raises UnknownParameter for a parameter that the route does not take."""
    known: frozenset[str] = handler.opt[_OPT]
    for name in connection.query_params:
        if name not in known:
            raise UnknownParameter(name[:_NAME_CHARS_MAX])


def one_of(known: Iterable[str]) -> Meta:
    """The schema, in the API's document, of a name that `names_of` reads: it is one of these."""
    return Meta(extra_json_schema={"enum": list(known)})


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
