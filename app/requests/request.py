"""Requests: every JSON body is strict JSON, and becomes what its route declares or is refused with its path."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import msgspec
from litestar import Request
from litestar.datastructures import State
from litestar.exceptions import InternalServerException
from litestar.types.empty import Empty

from threadmark.app.access.key import Caller
from threadmark.app.http.allowed_values import with_allowed_values
from threadmark.app.http.body_errors import BodyRefused, ClientGone, NotJson
from threadmark.app.http.strict_json import parse
from threadmark.app.pools import BODIES, BODY_BYTES_MIN

__all__ = ["ApiRequest"]

#: `text/plain` because browsers send it without a preflight, and clients of the dialect rely on that.
_JSON_TYPES = frozenset({"", "application/json", "text/plain"})


class ApiRequest(Request[Caller, None, State]):
    """A request of this API. An empty body is no body: routes that take one refuse it, the others do not ask."""

    async def body(self) -> bytes:
        """The bytes of the body, at most the limit. Raises ClientGone; 413 past the limit."""
        try:
            return await super().body()
        except InternalServerException as error:
            raise ClientGone from error

    async def value(self) -> Any:
        """The plain value of the body, for digests; None without a body. Raises NotJson, StrictJsonRefused."""
        body = await self.body()
        if not body:
            return None
        content_type = self.content_type[0].lower()
        if content_type not in _JSON_TYPES and not content_type.endswith("+json"):
            raise NotJson
        return await _beside(body, partial(parse, body))

    async def json(self) -> Any:
        """The body as the type of the route's `data`. Raises BodyRefused besides what `value` raises."""
        if self._json is Empty:
            value = await self.value()
            self._json = await _beside(await self.body(), partial(self._as_declared, value))
        return self._json

    def _as_declared(self, value: Any) -> Any:
        declared = self.route_handler.parsed_data_field
        if declared is None:
            return value
        try:
            # Strict: the framework itself would take "5" for 5 and "true" for true.
            return msgspec.convert(value, declared.annotation, strict=True)
        except msgspec.ValidationError as error:
            raise _refusal(error, declared.annotation) from error

    @property
    def caller(self) -> Caller:
        """Who calls; the gate has seen to it."""
        return cast(Caller, self.scope["user"])


async def _beside(body: bytes, work: Callable[[], Any]) -> Any:
    """What `work` makes of the body: beside the event loop where it may take long."""
    return work() if len(body) < BODY_BYTES_MIN else await BODIES.run(work)


def _refusal(error: msgspec.ValidationError, declared: Any) -> BodyRefused:
    why, _, place = str(error).partition(" - at `")
    path = place.rstrip("`") or "$"
    return BodyRefused(path, with_allowed_values(why, declared, path))
