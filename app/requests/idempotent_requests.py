"""Requests whose work may be done twice without harm, and whose answer is kept for their Idempotency-Key.

The key is reserved first and its answer stored last: whoever died in between is followed by one who does the work
again, and finds it done.
"""

from collections.abc import Awaitable, Callable
from functools import partial

from litestar import Response

from threadmark.app.access import Caller
from threadmark.app.requests.problem import MEDIA_TYPE
from threadmark.app.requests.request_key import RequestKey, replay
from threadmark.app.resources import Resources
from threadmark.state import store_reply
from threadmark.state.threads.receipts import look_up

__all__ = ["repeatable"]


async def repeatable(
    resources: Resources, caller: Caller, key: RequestKey | None, act: Callable[[], Awaitable[tuple[int, bytes]]]
) -> Response[bytes]:
    """What `act` answers (status and body), or what it answered before to the same key. Raises KeyReused."""
    if key is None:
        status, body = await act()
        return Response(body, status_code=status, media_type=MEDIA_TYPE)
    known = await resources.database.write(
        partial(look_up, tenant_id=caller.tenant_id, receipt=key.receipt(None), now_us=resources.wired.now_us())
    )
    if known is not None and known.body is not None:
        return replay(known)
    status, body = await act()
    await resources.database.write(
        partial(store_reply, tenant_id=caller.tenant_id, key=key.key, status_code=status, body=body)
    )
    return Response(body, status_code=status, media_type=MEDIA_TYPE)
