"""Answers through two API processes at once: each reaches the question that it names, or nobody's."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.support.cluster import Cluster
from tests.support.service import Service

RACE_COUNT = 25


async def waits(http: httpx.AsyncClient, thread_id: str) -> list[dict[str, Any]]:
    """The questions of a thread, by the step that asks."""
    items = (await http.get(f"/threads/{thread_id}/waits")).json()["items"]
    return sorted(items, key=lambda wait: str(wait["step_key"]))


@pytest.mark.usefixtures("client")
async def test_an_answer_and_a_resume_to_one_question_never_answer_the_other(fleet: Cluster) -> None:
    """Both name question one, through one API each: one is 200, the other 409, and question two is still asked."""
    with Service(fleet.environment) as other:
        async with fleet.services[0].http(fleet.key) as here, other.http(fleet.key) as there:
            for number in range(RACE_COUNT):
                calls = "\n".join(
                    f'parallel refund {{"order_id": "race-{number}-{side}", "amount_cents": 5}}' for side in "ab"
                )
                thread_id = (await here.post("/threads", json={})).json()["thread_id"]
                where = f"/threads/{thread_id}/runs"
                said = {"assistant_id": "refund", "input": {"messages": calls}}
                await here.post(f"{where}/wait", json=said)
                one, two = await waits(here, thread_id)
                resume = {"assistant_id": "refund", "command": {"resume": {one["wait_id"]: True}}}
                responses = await asyncio.gather(
                    here.post(f"/waits/{one['wait_id']}/answer", json={"answer": True}),
                    there.post(where, json=resume),
                )
                assert sorted(each.status_code for each in responses) == [200, 409], [each.text for each in responses]
                statuses = {wait["wait_id"]: wait["status"] for wait in await waits(here, thread_id)}
                assert statuses == {one["wait_id"]: "answered", two["wait_id"]: "open"}
