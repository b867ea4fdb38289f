"""A server killed while it compacts: the next one goes on at once, and asks for no chunk whose summary is kept."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.crash.client import Client
from tests.crash.doomed import DoomedServer
from tests.crash.launching import Launcher
from tests.support.paced_model import PacedModel, serve_paced_model
from tests.support.paced_summaries import ORDER, answer, chunk_of, finish, talk
from tests.support.waiting import wait_until
from threadmark.compaction import HOLD_S

#: Less than a hold lasts: the death itself ends it.
OVER_S = HOLD_S - 5.0
#: No lease ends while the test lasts; the next server knows of the death by itself.
SLOW = {"THREADMARK_LEASE_TTL_S": "3600", "THREADMARK_HEARTBEAT_S": "600"}


@pytest.fixture
async def model() -> AsyncIterator[PacedModel]:
    """A model that answers when the test lets it."""
    async with serve_paced_model() as model:
        yield model


@pytest.mark.parametrize("by", ["wait", "job"])
async def test_a_hold_ends_with_the_server_that_had_it(by: str, model: PacedModel, launcher: Launcher) -> None:
    """Waited for by its request, or one of a job: one compaction, each chunk answered once."""
    asked: list[str] = []
    answered: list[str] = []
    async with DoomedServer(launcher, {**SLOW, **model.environment}) as server:
        await server.start()
        async with Client(server.url, server.key) as client:
            thread_id = await talk(client)
            ordering = asyncio.create_task(order(client, by, thread_id))
            first = await model.next_call()
            asked.append(chunk_of(first))
            await answer(first)
            answered.append(asked[-1])
            open_at_death = await model.next_call()
            asked.append(chunk_of(open_at_death))
            await server.end()

            await server.start()
            going = asyncio.create_task(finish(model, asked, answered, timeout_s=OVER_S))
            done: list[dict[str, Any]] = []

            async def is_over() -> bool:
                if going.done():
                    going.result()
                done[:] = (await client.get(f"/threads/{thread_id}/compactions"))["items"]
                return bool(done) and done[0]["status"] not in ("planned", "summarising")

            try:
                await wait_until(is_over, description="the compaction to be over", timeout_s=OVER_S)
                await ordering
            finally:
                going.cancel()
            views = (await client.get(f"/threads/{thread_id}/views"))["items"]

    assert [(each["status"], each["strategy"]) for each in done] == [("committed", "model")], done
    assert [each["cause"] for each in views] == ["compaction"]
    assert Counter(answered) == Counter(set(answered))
    assert Counter(asked) == Counter(answered) + Counter([chunk_of(open_at_death)])


async def order(client: Client, by: str, thread_id: str) -> None:
    """Order the compaction; a request that waits gets its answer from the server that finishes it."""
    if by == "wait":
        shown = await client.post(f"/threads/{thread_id}/compactions", {**ORDER, "wait": True}, idempotency_key="wait")
        assert shown["status"] == "committed"
    else:
        spec = {**ORDER, "filter": {"thread_ids": [thread_id]}}
        await client.post("/admin/compaction-jobs", spec, idempotency_key="job")
