"""The refund story over HTTP while other processes move the runs, and Redis is flushed, killed and started again."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.crash.client import Client
from tests.support.cluster import Cluster
from tests.support.scenario import Conversation, Plot, play
from tests.support.servers import PrivateRedis
from tests.support.waiting import wait_until

ONCE_EACH = {"lookup_order": 1, "check_policy": 1, "email_customer": 1, "refund": 1, "confirm": 1}
DELAY_MS = 150


def happened(fleet: Cluster, plot: Plot) -> Counter[str]:
    """How often each tool reached the outside world for this order."""
    return Counter(line["tool"] for line in fleet.effects() if line["arguments"]["order_id"] == plot.order_id)


async def reached(fleet: Cluster, plot: Plot, tool: str) -> None:
    """Return when the tool is in the middle of its call, or past it."""
    await wait_until(lambda: happened(fleet, plot)[tool] > 0, description=f"{tool} to be called")


def workers_of(conversation: Conversation) -> set[str]:
    """The workers that took turns of the story."""
    return {entry["worker_id"] for entry in conversation.journal if entry["kind"] == "turn_started"}


def assert_whole(fleet: Cluster, conversation: Conversation) -> None:
    """Every run has succeeded, every effect happened once, the journal verifies, and no step was in doubt."""
    assert [run["status"] for run in conversation.runs] == ["success"] * 3
    assert happened(fleet, conversation.plot) == ONCE_EACH
    assert conversation.verdict["holds"] is True
    assert conversation.resolutions == []


async def test_a_story_runs_across_processes(fleet: Cluster, client: Client) -> None:
    """The API process moves nothing itself: every turn is a worker's."""
    plot = Plot(order_id="across", approve_by="resume")

    conversation = await play(client, plot, fleet.effects)

    assert_whole(fleet, conversation)
    assert workers_of(conversation)
    assert not any(f"-{fleet.services[0].pid}-" in worker_id for worker_id in workers_of(conversation))


async def test_many_stories_at_once(fleet: Cluster, client: Client) -> None:
    """Two workers share them; each step of each story happens once."""
    plots = [Plot(order_id=f"many-{number}", delay_ms=20) for number in range(12)]

    stories = await asyncio.gather(*(play(client, plot, fleet.effects) for plot in plots))

    for conversation in stories:
        assert_whole(fleet, conversation)
    assert len(set().union(*(workers_of(conversation) for conversation in stories))) == 2


def flush(redis: PrivateRedis) -> None:
    """Forget everything, between two answers."""
    redis.flush()


def kill_and_start(redis: PrivateRedis) -> None:
    """Die, and come back empty."""
    redis.restart()


@pytest.mark.parametrize("tool", ["lookup_order", "refund"])
@pytest.mark.parametrize("lose", [flush, kill_and_start])
async def test_redis_may_lose_everything_in_the_middle(
    fleet: Cluster, client: Client, fleet_redis: PrivateRedis, lose: Callable[[PrivateRedis], Any], tool: str
) -> None:
    """A flush or a restart while a tool is being called: the story goes on as if nothing had been."""
    plot = Plot(order_id=f"{lose.__name__}-{tool}", delay_ms=DELAY_MS)
    story = asyncio.create_task(play(client, plot, fleet.effects))

    await reached(fleet, plot, tool)
    lose(fleet_redis)

    assert_whole(fleet, await story)


async def test_a_story_needs_no_redis(fleet: Cluster, client: Client, fleet_redis: PrivateRedis) -> None:
    """Redis is down the whole time: every request is answered, and the sweeps move the story."""
    fleet_redis.kill()
    plot = Plot(order_id="without")

    conversation = await play(client, plot, fleet.effects)

    assert_whole(fleet, conversation)
    async with fleet.services[0].http(fleet.key) as http:
        figures = (await http.get("/metrics")).text
    assert 'threadmark_redis_away{part="doorbell"} 1.0' in figures
