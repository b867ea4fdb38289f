"""How a route says which scope it needs.

A route declares its scope in its `opt`: `@get("/info", opt=needs(Scope.READ))`. A route without a declaration does not
start (`check_declared`), so a new one cannot be open by accident.
"""

from collections.abc import Iterable
from typing import Any

from litestar import Litestar
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler
from litestar.routes import HTTPRoute

from threadmark.app.access.scopes import Scope

__all__ = [
    "ENDS_WITH_CLIENT",
    "PUBLIC",
    "UndeclaredRoute",
    "check_declared",
    "ends_with_client",
    "is_automatic",
    "needs",
    "scope_needed",
]

_OPT = "needs"
_ENDS = "ends_with_client"
#: What the `opt` of a route adds that writes, and may be cancelled all the same when its client has gone.
ENDS_WITH_CLIENT: dict[str, Any] = {_ENDS: True}

#: The `opt` of a route that everybody may call.
PUBLIC: dict[str, Any] = {_OPT: None}


class UndeclaredRoute(RuntimeError):
    """A route does not say which scope it needs; the server does not start."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(f"these routes declare no scope (opt=needs(Scope.…)): {', '.join(sorted(names))}")


def needs(scope: Scope) -> dict[str, Any]:
    """The `opt` of a route that needs `scope`."""
    return {_OPT: scope}


def scope_needed(handler: BaseRouteHandler) -> Scope | None:
    """The scope a handler declares; None for a public one. Raises UndeclaredRoute."""
    if _OPT not in handler.opt:
        raise UndeclaredRoute([str(handler)])
    scope: Scope | None = handler.opt[_OPT]
    return scope


def ends_with_client(handler: BaseRouteHandler) -> bool:
    """Whether a request may be cancelled when its client has gone: a read, or a route that says so."""
    return handler.opt.get(_OPT) is Scope.READ or bool(handler.opt.get(_ENDS))


def is_automatic(handler: BaseRouteHandler) -> bool:
    """Whether the framework made the handler itself: it answers OPTIONS with the methods of the path."""
    return isinstance(handler, HTTPRouteHandler) and handler.http_methods == {"OPTIONS"}


def check_declared(app: Litestar) -> None:
    """Raises UndeclaredRoute, naming every route of `app` that declares no scope, whatever its kind."""
    undeclared = [
        f"{route.path} ({handler})"
        for route in app.routes
        for handler in (route.route_handlers if isinstance(route, HTTPRoute) else [route.route_handler])
        if _OPT not in handler.opt and not is_automatic(handler)
    ]
    if undeclared:
        raise UndeclaredRoute(undeclared)
