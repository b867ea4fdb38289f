"""Idempotency of what one transaction of the state database cannot make whole. Two policies:

`repeatable`: work that may be done twice without harm. The key is reserved first and the answer stored last; after a
death in between, a repeated request does the work again, and finds it done.

`changed_once`: a change of memory. Memory keeps the answer in the transaction of the change, so a crash between the two
databases loses nothing; the state database notes only that the key is taken. Of equal changes at once, at one server
or at two, the later ones wait for the first and get its answer.
"""

import time
from asyncio import timeout
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec
from litestar import Response

from threadmark.app.access import Caller
from threadmark.app.http.problem import MEDIA_TYPE
from threadmark.app.requests.answers import once
from threadmark.app.requests.request_key import RequestKey, replay
from threadmark.app.resources import Resources
from threadmark.memory import AnsweredBefore, Receipt
from threadmark.state import KeyInProgress, Reply, replied, store_reply
from threadmark.state.threads.receipts import KEEP_S, look_up

__all__ = ["WAIT_S", "changed_once", "memory_receipt", "repeatable"]

#: How long a change waits for an equal one that came first.
WAIT_S = 5.0
T = TypeVar("T")


class Change(Protocol[T]):
    """A verb of memory, lacking only its receipt."""

    def __call__(self, *, receipt: Receipt[T] | None) -> Awaitable[T]: ...


async def repeatable(
    resources: Resources, caller: Caller, key: RequestKey | None, act: Callable[[], Awaitable[tuple[int, bytes]]]
) -> Response[bytes]:
    """What `act` answers (status and body), or what was answered first to the same key. Raises KeyReused."""
    if key is None:
        status, body = await act()
        return Response(body, status_code=status, media_type=MEDIA_TYPE)
    known = await resources.database.write(
        partial(look_up, tenant_id=caller.tenant_id, receipt=key.receipt(None), now_us=resources.wired.now_us())
    )
    if known is not None and known.body is not None:
        return replay(known)
    status, body = await act()
    first = await resources.database.write(
        partial(store_reply, tenant_id=caller.tenant_id, key=key.key, status_code=status, body=body)
    )
    if first is not None:
        return replay(first)
    return Response(body, status_code=status, media_type=MEDIA_TYPE)


async def changed_once(
    resources: Resources, caller: Caller, key: RequestKey | None, change: Change[T], shown: Callable[[T], Any]
) -> Response[bytes]:
    """What `change` made, as `shown`, or what was answered first to the same key.

    Raises KeyReused and ReceiptReused; KeyInProgress and ReceiptInProgress when the first takes longer than WAIT_S.
    """

    def answer(made: T) -> bytes:
        return msgspec.json.encode(shown(made))

    if key is None:
        return once(answer(await change(receipt=None)))
    began = time.monotonic()
    async with AsyncExitStack() as stack:
        try:
            async with timeout(WAIT_S):
                turn = resources.request_locks.one_at_a_time((caller.tenant_id, key.key))
                await stack.enter_async_context(turn)
        except TimeoutError as error:
            raise KeyInProgress(key.key) from error
        receipt = memory_receipt(key, answer, wait_s=WAIT_S - (time.monotonic() - began))
        return await _replay_or_change(resources, caller, key, change, receipt)


def memory_receipt(key: RequestKey, answer: Callable[[T], bytes], *, wait_s: float = WAIT_S) -> Receipt[T]:
    """What memory keeps of a request, for as long as its key is known."""
    return Receipt(key=key.key, request_digest=key.request_digest, answer=answer, keep_s=KEEP_S, wait_s=wait_s)


async def _replay_or_change(
    resources: Resources, caller: Caller, key: RequestKey, change: Change[T], receipt: Receipt[T]
) -> Response[bytes]:
    taken = key.receipt(None)
    before = await resources.database.read(partial(replied, tenant_id=caller.tenant_id, receipt=taken))
    if before is not None and before.body is not None:
        return replay(before)
    try:
        answer = once(receipt.answer(await change(receipt=receipt)))
    except AnsweredBefore as first:
        answer = replay(Reply(status_code=200, body=first.answer, run_id=None))
    # Last: a change that is refused leaves its key free for a better one.
    await resources.database.write(
        partial(look_up, tenant_id=caller.tenant_id, receipt=taken, now_us=resources.wired.now_us())
    )
    return answer
