"""Idempotency keys: a request that is sent again is done once, and answered as the first time."""

import asyncio
from functools import partial
from typing import Any

import pytest

from tests.conformance.store import Store, a_receipt
from tests.support.factories import TENANT, a_submission
from threadmark.state import KeyReused, Receipt, Reply, ThreadExists, accept, open_thread, prune, store_reply
from threadmark.state.threads.receipts import KEEP_S

CALLER_COUNT = 20


async def test_a_request_sent_again_with_its_key_makes_one_run(store: Store) -> None:
    """The second gets the stored answer of the first; nothing is made (C49)."""
    submission = a_submission("hello", receipt=a_receipt())
    first = await store.submission(submission)
    assert first.run is not None

    second = await store.submission(submission)

    assert second.run is None
    assert second.replay == Reply(status_code=200, body=first.run.run_id.encode(), run_id=first.run.run_id)
    assert len(await store.runs(first.run.thread)) == 1


async def test_twenty_requests_at_once_with_one_key_make_one_run(store: Store, other_store: Store) -> None:
    """From two processes at once: one run, and everybody gets its answer."""
    thread = await store.thread()
    submission = a_submission("hello", thread_id=thread.thread_id, receipt=a_receipt())

    answers = await asyncio.gather(
        *((store, other_store)[number % 2].submission(submission) for number in range(CALLER_COUNT))
    )

    (run,) = [each.run for each in answers if each.run is not None]
    replays = [each.replay for each in answers if each.replay is not None]
    assert len(replays) == CALLER_COUNT - 1
    assert {each.body for each in replays} == {run.run_id.encode()}
    assert len(await store.runs(thread.number)) == 1


async def test_a_key_with_another_request_is_refused(store: Store) -> None:
    """Nothing is made; for another tenant the same key is another key."""
    await store.submission(a_submission("hello", receipt=a_receipt()))

    with pytest.raises(KeyReused):
        await store.submission(a_submission("other", receipt=a_receipt(digest="another digest")))

    theirs = await store.submission(
        a_submission("other", tenant_id="other", receipt=a_receipt(digest="another digest"))
    )
    assert theirs.run is not None


async def test_a_key_whose_answer_is_open_names_its_run(store: Store) -> None:
    """A stream or a wait has no answer yet; once it has, a repeat gets it, and a later answer does not replace it."""
    submission = a_submission("hello", receipt=a_receipt(is_open=True))
    run = (await store.submission(submission)).run
    assert run is not None
    assert (await store.submission(submission)).replay == Reply(status_code=None, body=None, run_id=run.run_id)

    for body in (b"first", b"second"):
        await store.write(partial(store_reply, tenant_id=TENANT, key="key-1", status_code=200, body=body))

    assert (await store.submission(submission)).replay == Reply(status_code=200, body=b"first", run_id=run.run_id)


async def test_a_key_lives_for_a_day_and_then_names_a_new_request(store: Store) -> None:
    """At least 24 hours; a receipt that was pruned is no answer any more."""
    submission = a_submission("hello", receipt=a_receipt())
    now_us = store.now_us()
    for at_us, is_new in ((now_us, True), (now_us + KEEP_S * 1_000_000, False)):
        await store.write(partial(prune, now_us=at_us))
        made = await store.write(lambda connection: accept(connection, submission, now_us))
        assert (made.run is not None) == is_new

    assert await store.write(lambda connection: prune(connection, now_us + KEEP_S * 1_000_000 + 1)) == 1
    assert (await store.submission(submission)).run is not None


async def test_a_thread_is_opened_once_with_one_key(store: Store) -> None:
    """Twice the same request is one thread; the same id in another request is refused, or returned if it may be."""

    async def opened(receipt: Receipt | None, *, keep_existing: bool = False) -> Any:
        return await store.write(
            lambda connection: open_thread(
                connection,
                tenant_id=TENANT,
                thread_id="t",
                metadata={"a": 1},
                keep_existing=keep_existing,
                receipt=receipt,
                now_us=store.now_us(),
            )
        )

    thread = await opened(a_receipt())

    assert isinstance(await opened(a_receipt()), Reply)
    with pytest.raises(ThreadExists):
        await opened(None)
    assert (await opened(None, keep_existing=True)).number == thread.number
