"""Idempotency of what is made in the memory database: made, then kept with its key in the state database.

Equal requests at one server pass one at a time, so that the later ones find the answer of the first. A crash between
the two databases leaves the key new, and the request is performed again: every write of memory may be.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import msgspec
from litestar import Response

from threadmark.app.access import Caller
from threadmark.app.requests.answers import once
from threadmark.app.requests.request_key import RequestKey, replay
from threadmark.app.resources import Resources
from threadmark.state import KeyInProgress, keep_reply, replied

__all__ = ["WAIT_S", "make_once"]

#: How long a request waits for an equal one that came first.
WAIT_S = 5.0


async def make_once(
    resources: Resources, caller: Caller, request_key: RequestKey | None, make: Callable[[], Awaitable[Any]]
) -> Response[bytes]:
    """The answer to what `make` made, or the stored one of the request's key.

    Raises KeyReused, or KeyInProgress when the request that came first takes longer than WAIT_S.
    """
    if request_key is None:
        return once(msgspec.json.encode(await make()))
    first_ends = resources.request_locks.one_at_a_time((caller.tenant_id, request_key.key))
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(WAIT_S):
                await stack.enter_async_context(first_ends)
        except TimeoutError as error:
            raise KeyInProgress(request_key.key) from error
        return await _replay_or_make(resources, caller, request_key, make)


async def _replay_or_make(
    resources: Resources, caller: Caller, request_key: RequestKey, make: Callable[[], Awaitable[Any]]
) -> Response[bytes]:
    receipt = request_key.receipt(_encoded)
    before = await resources.database.read(partial(replied, tenant_id=caller.tenant_id, receipt=receipt))
    if before is not None and before.body is not None:
        return replay(before)
    made = await make()
    kept = await resources.database.write(
        lambda connection: keep_reply(connection, caller.tenant_id, receipt, made, now_us=resources.wired.now_us())
    )
    return once(_encoded(made)[1]) if kept is None or kept.body is None else replay(kept)


def _encoded(made: Any) -> tuple[int, bytes]:
    return 200, msgspec.json.encode(made)
