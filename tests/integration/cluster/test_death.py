"""A worker process that ends in the middle of a step: the other one goes on, and nothing recorded happens again."""

import asyncio
from collections import Counter
from typing import Any

from tests.crash.client import Client
from tests.support.cluster import Cluster, WorkerProcess
from tests.support.scenario import Conversation, Plot, play
from tests.support.servers import PrivateRedis
from tests.support.waiting import wait_until

DELAY_MS = 1_000
LONGER_THAN_GRACE_MS = 2_500
HOUR_S = 3_600
ATTEMPT_COUNT = 5


def lines_of(fleet: Cluster, plot: Plot) -> list[dict[str, Any]]:
    """What reached the outside world for this order."""
    return [line for line in fleet.effects() if line["arguments"]["order_id"] == plot.order_id]


async def runs_of(client: Client, plot: Plot) -> list[dict[str, Any]]:
    """The runs of the story so far, newest first."""
    threads = await client.post("/threads/search", {"limit": 100}, idempotency_key=f"{plot.order_id}-look")
    for thread in threads:
        runs: list[dict[str, Any]] = await client.get(f"/threads/{thread['thread_id']}/runs")
        if any(plot.order_id in str(run["kwargs"]) for run in runs):
            return runs
    return []


async def holder_of(client: Client, fleet: Cluster, thread_id: str) -> WorkerProcess:
    """The worker that moves the thread."""
    page = await client.get(f"/threads/{thread_id}/journal", after=0, limit=100)
    worker_id = [each["payload"]["worker_id"] for each in page["items"] if each["kind"] == "turn_started"][-1]
    return next(worker for worker in fleet.workers if f"-{worker.pid}-" in worker_id)


async def in_the_middle_of(client: Client, fleet: Cluster, plot: Plot, tool: str) -> WorkerProcess:
    """The worker that calls the tool, once it has been called."""
    await wait_until(
        lambda: any(line["tool"] == tool for line in lines_of(fleet, plot)), description=f"{tool} to be called"
    )
    (run, *_) = await runs_of(client, plot)
    return await holder_of(client, fleet, run["thread_id"])


def forge_marks(redis: PrivateRedis, runs: list[dict[str, Any]]) -> None:
    """Say that every turn of the runs is in progress somewhere, for an hour to come: arq refuses to ring for them."""
    with redis.client() as client:
        for run in runs:
            for attempt in range(1, ATTEMPT_COUNT):
                client.set(f"arq:in-progress:{run['run_id']}:{attempt}", "1", ex=HOUR_S)
                client.set(f"arq:job:{run['run_id']}:{attempt}", "{}", ex=HOUR_S)


def assert_nothing_happened_again(fleet: Cluster, conversation: Conversation, interrupted: str) -> None:
    """One line of each tool; of the one that was interrupted at most two, which the other side knows to be one."""
    lines = lines_of(fleet, conversation.plot)
    counts = Counter(line["tool"] for line in lines)
    again = counts.pop(interrupted)

    assert set(counts.values()) == {1}, counts
    assert again in (1, 2)
    assert len({line["idempotency_key"] for line in lines if line["tool"] == interrupted}) == 1
    assert len({line["idempotency_key"] for line in lines}) == 5
    assert [run["status"] for run in conversation.runs] == ["success"] * 3
    assert conversation.verdict["holds"] is True


async def test_a_deploy_hands_over(fleet: Cluster, client: Client) -> None:
    """A worker whose grace period ends abandons its step; the other worker repeats that step and no other."""
    plot = Plot(order_id="deploy", delay_ms=LONGER_THAN_GRACE_MS, slow="confirm")
    story = asyncio.create_task(play(client, plot, fleet.effects))
    worker = await in_the_middle_of(client, fleet, plot, "confirm")

    await asyncio.to_thread(worker.stop)
    conversation = await story

    assert_nothing_happened_again(fleet, conversation, "confirm")


async def test_marks_in_redis_decide_nothing(fleet: Cluster, client: Client, fleet_redis: PrivateRedis) -> None:
    """After a kill every turn of the run is still in progress by Redis, for an hour; the run goes on all the same."""
    plot = Plot(order_id="marks", delay_ms=DELAY_MS, slow="check_policy")
    story = asyncio.create_task(play(client, plot, fleet.effects))
    worker = await in_the_middle_of(client, fleet, plot, "check_policy")
    forge_marks(fleet_redis, await runs_of(client, plot))

    await asyncio.to_thread(worker.kill)
    conversation = await story

    assert_nothing_happened_again(fleet, conversation, "check_policy")


async def test_a_payment_in_the_middle_is_not_made_twice(fleet: Cluster, client: Client) -> None:
    """The step is in doubt; a check finds one payment, and the run continues with it."""
    plot = Plot(order_id="doubt", delay_ms=DELAY_MS, slow="refund")
    story = asyncio.create_task(play(client, plot, fleet.effects))
    worker = await in_the_middle_of(client, fleet, plot, "refund")

    await asyncio.to_thread(worker.kill)
    conversation = await story

    assert Counter(line["tool"] for line in lines_of(fleet, plot))["refund"] == 1
    assert_nothing_happened_again(fleet, conversation, "refund")
