"""The gate: who passes it, who has to wait, and what it passes on."""

from typing import Any

import pytest
from litestar import get
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler

from tests.support.fake_key_store import KeyShelf
from threadmark.app.access import Caller, Scope, Token
from threadmark.app.access.gate import FAILURES_PER_KEY, FAILURES_PER_SOURCE, Forbidden, Gate, TooMany, Unauthenticated
from threadmark.app.access.route_scopes import PUBLIC, needs
from threadmark.app.access.token_buckets import Buckets
from threadmark.app.http.request_state import facts_of, mark
from threadmark.db.execution import pools


async def _nothing() -> None:
    """A handler that is never called."""


OPEN = get("/open", opt=PUBLIC)(_nothing)
READS = get("/reads", opt=needs(Scope.READ))(_nothing)
RUNS = get("/runs", opt=needs(Scope.RUN))(_nothing)
METHODS = HTTPRouteHandler("/reads", http_method="OPTIONS")(_nothing)

Headers = list[tuple[str, str]]


class Door:
    """A gate before keys on a shelf, and the response to the last request that came to it."""

    def __init__(self, *, burst: int = 1_000) -> None:
        self.shelf = KeyShelf()
        rates = Buckets(per_s=0.5, burst=burst)
        self.gate = Gate(self.shelf.ring, rates, monotonic=lambda: self.shelf.now_s, answer_s=7.0)
        self.scope: dict[str, Any] = {}

    async def knock(
        self, key: Token | Headers | None, handler: BaseRouteHandler = READS, *, client: str = "192.0.2.1"
    ) -> Exception | None:
        """What the gate raises; None for a request that passes."""
        headers = [("x-api-key", key.text)] if isinstance(key, Token) else key or []
        raw = [(name.encode(), value.encode()) for name, value in headers]
        self.scope = {"type": "http", "headers": raw}
        mark(self.scope, request_id="r", client=client)
        try:
            await self.gate.admit(ASGIConnection(self.scope), handler)  # type: ignore[arg-type]
        except (Unauthenticated, Forbidden, TooMany) as error:
            return error
        return None

    async def knock_wrongly(self, count: int, **changes: Any) -> list[str]:
        """The names of what so many wrong keys are answered with, each of an id of its own."""
        return [type(await self.knock(Token.fresh(), **changes)).__name__ for _ in range(count)]


async def test_a_public_route_asks_for_nothing() -> None:
    """Nobody is looked for, and nobody is named."""
    door = Door()

    assert await door.knock(None, OPEN) is None
    assert await door.knock(Token.fresh(), OPEN) is None
    assert ("user" in door.scope, door.shelf.asked) == (False, [])


async def test_those_behind_the_gate_know_who_calls() -> None:
    """The caller is on the request, in the log line, and on what is asked of the pools, with the time for it."""
    door = Door()
    token = door.shelf.add(Scope.READ)

    assert await door.knock(token) is None

    assert door.scope["user"] == Caller("acme", token.key_id, frozenset({Scope.READ}))
    assert facts_of(door.scope)["tenant_id"] == "acme"
    assert facts_of(door.scope)["key_id"] == token.key_id
    patience = pools._patience.get()
    assert (pools._tenant.get(), patience and patience.limit_s) == ("acme", 7.0)


async def test_a_key_without_the_scope_is_refused_and_the_scope_named() -> None:
    """The scope that the route declares, or one that implies it; without any key it is asked for one first."""
    door = Door()
    reader, admin, nothing = door.shelf.add(Scope.READ), door.shelf.add(Scope.ADMIN), door.shelf.add()

    refused = await door.knock(reader, RUNS)
    assert isinstance(refused, Forbidden)
    assert str(refused) == "this key may not do this: it lacks the scope run"
    assert await door.knock(admin, RUNS) is None
    assert isinstance(await door.knock(nothing), Forbidden)
    unknown = await door.knock(None, RUNS)
    assert isinstance(unknown, Unauthenticated)
    assert "X-Api-Key" in str(unknown)


async def test_the_methods_of_a_path_are_listed_for_any_valid_key() -> None:
    """What the framework answers by itself needs no scope; but a key it does."""
    door = Door()

    assert await door.knock(door.shelf.add(), METHODS) is None
    assert isinstance(await door.knock(None, METHODS), Unauthenticated)


@pytest.mark.parametrize(
    ("headers", "passes"),
    [
        ([("x-api-key", "{key}")], True),
        ([("authorization", "Bearer {key}")], True),
        ([("authorization", "bearer  {key} ")], True),
        ([("x-api-key", "{key}"), ("authorization", "Bearer {key}")], True),
        ([("x-api-key", "{key}"), ("authorization", "Bearer {other}")], False),
        ([("x-api-key", "{key}"), ("x-api-key", "{other}")], False),
        ([("x-api-key", "{key}"), ("authorization", "Basic {key}")], False),
        ([("authorization", "Basic {key}")], False),
        ([("authorization", "{key}")], False),
        ([("x-api-key", "")], False),
        ([("cookie", "{key}")], False),
    ],
)
async def test_a_request_carries_one_key(headers: Headers, passes: bool) -> None:
    """In one of two headers, or the same in both; two keys are none."""
    door = Door()
    key, other = door.shelf.add(Scope.READ), door.shelf.add(Scope.READ)

    answer = await door.knock([(name, value.format(key=key.text, other=other.text)) for name, value in headers])

    assert (answer is None) == passes
    assert passes or isinstance(answer, Unauthenticated)


async def test_each_key_has_a_rate_of_its_own() -> None:
    """What one spends, another of the same tenant keeps; the refusal says when to come back."""
    door = Door(burst=2)
    one, other = door.shelf.add(Scope.READ), door.shelf.add(Scope.READ)
    assert [await door.knock(one), await door.knock(one)] == [None, None]

    refused = await door.knock(one)

    assert isinstance(refused, TooMany)
    assert (str(refused), refused.retry_after_s) == ("too many requests with this key; try again in 2.0 s", 2.0)
    assert await door.knock(other) is None
    door.shelf.now_s += 2.0
    assert await door.knock(one) is None


async def test_a_source_of_wrong_keys_is_limited() -> None:
    """After its share; then nothing is looked up for it, and each second it may try one."""
    door = Door()

    assert await door.knock_wrongly(FAILURES_PER_SOURCE) == ["Unauthenticated"] * 60
    asked = len(door.shelf.asked)
    refused = await door.knock(Token.fresh())
    assert isinstance(refused, TooMany)
    assert (str(refused), refused.retry_after_s) == ("too many wrong API keys; try again in 1.0 s", 1.0)
    assert len(door.shelf.asked) == asked
    assert await door.knock_wrongly(1, client="192.0.2.2") == ["Unauthenticated"]
    door.shelf.now_s += 1.0
    assert await door.knock_wrongly(2) == ["Unauthenticated", "TooMany"]


async def test_what_is_spelled_like_no_key_counts_as_a_wrong_one() -> None:
    """It spends the share of its source; a request without any key spends nothing."""
    door = Door()
    for _ in range(FAILURES_PER_SOURCE):
        assert isinstance(await door.knock(None), Unauthenticated)
        assert isinstance(await door.knock([("x-api-key", "tm_")]), Unauthenticated)

    assert isinstance(await door.knock([("x-api-key", "tm_")]), TooMany)
    assert isinstance(await door.knock(None), Unauthenticated)


async def test_neighbours_of_a_bad_source_pass_with_a_key_that_is_in_use() -> None:
    """One that was looked up before; one that nobody used yet waits with the rest."""
    door = Door()
    used, fresh = door.shelf.add(Scope.READ), door.shelf.add(Scope.READ)
    assert await door.knock(used) is None
    await door.knock_wrongly(FAILURES_PER_SOURCE)

    assert await door.knock(used) is None
    assert isinstance(await door.knock(fresh), TooMany)
    assert await door.knock(fresh, client="192.0.2.2") is None


async def test_guesses_at_one_key_id_from_many_addresses_are_limited() -> None:
    """After its share, one guess in three seconds; its holder passes all the same."""
    door = Door()
    token = door.shelf.add(Scope.READ)
    guess = Token(token.key_id, "0" * 64)

    answers = [await door.knock(guess, client=f"192.0.2.{host}") for host in range(FAILURES_PER_KEY)]
    assert [type(each) for each in answers] == [Unauthenticated] * 20
    refused = await door.knock(guess, client="198.51.100.1")
    assert isinstance(refused, TooMany)
    assert refused.retry_after_s == pytest.approx(3.0)
    assert await door.knock(token) is None
