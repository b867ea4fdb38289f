"""The gate: every request passes it before its body is read. Who are you, not too fast, may you?"""

from collections.abc import Callable

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from threadmark.app.access.key import Caller, Token
from threadmark.app.access.ring import KeyRing
from threadmark.app.access.route_scopes import is_automatic, scope_needed
from threadmark.app.access.token_buckets import Buckets
from threadmark.app.http.client_address import source_of
from threadmark.app.http.request_state import client_of, mark_caller
from threadmark.db.execution.pools import act_for

__all__ = ["FAILURES_PER_KEY", "FAILURES_PER_SOURCE", "Forbidden", "Gate", "TooMany", "Unauthenticated"]

#: Wrong keys that a rested source, and a rested key id, get a 401 for; from then on most get a 429.
FAILURES_PER_SOURCE = 60
FAILURES_PER_KEY = 20
_FAILURES_PER_SOURCE_S = 1.0
_FAILURES_PER_KEY_S = 1 / 3


class Unauthenticated(Exception):
    """No key, or one that opens nothing: the answer does not say which."""

    def __init__(self) -> None:
        super().__init__("a valid API key is required, in the header X-Api-Key or as Authorization: Bearer")


class Forbidden(Exception):
    """The key is good and may not do this."""

    def __init__(self, why: str) -> None:
        super().__init__(why)


class TooMany(Exception):
    """Asked too often; the same request is welcome after `retry_after_s` seconds."""

    def __init__(self, what: str, retry_after_s: float) -> None:
        super().__init__(f"too many {what}; try again in {retry_after_s:.1f} s")
        self.retry_after_s = retry_after_s


class Gate:
    """A Litestar guard for the whole application.

    Wrong keys are counted per source and per key id. A source that has spent its share reads no database any more; a
    valid key that is in use passes all the same, so an attacker cannot lock out the other clients behind one address,
    or the holder of a key whose id is known.
    """

    def __init__(self, ring: KeyRing, rates: Buckets, *, monotonic: Callable[[], float], answer_s: float) -> None:
        self._ring = ring
        self._rates = rates
        self._monotonic = monotonic
        self._answer_s = answer_s
        self._by_source = Buckets(per_s=_FAILURES_PER_SOURCE_S, burst=FAILURES_PER_SOURCE)
        self._by_key = Buckets(per_s=_FAILURES_PER_KEY_S, burst=FAILURES_PER_KEY)

    async def admit(self, connection: "ASGIConnection", handler: BaseRouteHandler) -> None:  # type: ignore[type-arg]
        """Let the request pass, with its Caller as `user`. Raises Unauthenticated, TooMany or Forbidden."""
        # The framework's own OPTIONS lists the methods of a path: any valid key may read it.
        is_open_to_holders = is_automatic(handler)
        needed = None if is_open_to_holders else scope_needed(handler)
        if needed is None and not is_open_to_holders:
            return
        caller = await self._caller_of(connection)
        connection.scope["user"] = caller
        act_for(caller.tenant_id, limit_s=self._answer_s)
        mark_caller(connection.scope, tenant_id=caller.tenant_id, key_id=caller.key_id)
        if wait_s := self._rates.take((caller.tenant_id, caller.key_id), self._monotonic()):
            raise TooMany("requests with this key", wait_s)
        if needed is not None and not caller.may(needed):
            raise Forbidden(f"this key may not do this: it lacks the scope {needed}")

    async def _caller_of(self, connection: "ASGIConnection") -> Caller:  # type: ignore[type-arg]
        presented = _presented(connection)
        if not presented:
            raise Unauthenticated
        source = source_of(client_of(connection.scope))
        token = Token.parse(presented)
        wait_s = self._by_source.wait_s(source, self._monotonic())
        if wait_s and not (token and self._ring.knows(token.key_id)):
            raise TooMany("wrong API keys", wait_s)
        caller = await self._ring.caller_of(token) if token else None
        if caller is None:
            raise self._failure(source, token)
        return caller

    def _failure(self, source: str, token: Token | None) -> Exception:
        now_s = self._monotonic()
        waits_s = [self._by_source.take(source, now_s)]
        if token:
            waits_s.append(self._by_key.take(token.key_id, now_s))
        return TooMany("wrong API keys", max(waits_s)) if any(waits_s) else Unauthenticated()


def _presented(connection: "ASGIConnection") -> str | None:  # type: ignore[type-arg]
    """The key that the request carries: from one header, once. Two keys are none, as it is unclear which counts."""
    headers = connection.headers
    found = headers.getall("x-api-key", [])
    for value in headers.getall("authorization", []):
        kind, _, credentials = value.partition(" ")
        found.append(credentials.strip() if kind.lower() == "bearer" else "")
    return found[0] if len(set(found)) == 1 else None
