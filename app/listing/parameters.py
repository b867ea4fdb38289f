"""Query parameters: one that the route does not take is refused, because ignoring it would answer another question."""

from litestar import Litestar
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.routes import HTTPRoute

__all__ = ["UnknownParameter", "learn_parameters", "refuse_unknown"]

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
