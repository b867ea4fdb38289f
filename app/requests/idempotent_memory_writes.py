"""Idempotency of what is made in the memory database: made, then kept with its key in the state database.

A crash between the two leaves the key new, and the request is performed again: every write of memory may be.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
from litestar import Response

from threadmark.app.access import Caller
from threadmark.app.requests.answers import once
from threadmark.app.requests.request_key import RequestKey, replay
from threadmark.app.resources import Resources
from threadmark.state import keep_reply, replied

__all__ = ["make_once"]


async def make_once(
    resources: Resources, caller: Caller, request_key: RequestKey | None, make: Callable[[], Awaitable[Any]]
) -> Response[bytes]:
    """The answer to what `make` made, or the stored one of the request's key. Raises KeyReused."""
    if request_key is None:
        return once(msgspec.json.encode(await make()))
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
