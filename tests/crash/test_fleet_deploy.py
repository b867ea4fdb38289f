"""A rolling deploy under load: two APIs and three workers are stopped and replaced, one after the other.

Clients know both APIs, as a balancer does: one that does not take a connection, or asks to come back later, is passed
over. Everything else that is not an answer is a failed request.
"""

import asyncio
import itertools
import random
import signal
from collections import Counter
from collections.abc import Callable

import httpx2
import pytest

from tests.crash.client import Client
from tests.crash.fleet import Fleet
from tests.crash.launching import Launcher
from tests.crash.supervised_process import Mortal
from tests.support.scenario import Conversation, Plot, ask, play
from tests.support.scenario_checks import violations
from tests.support.servers import PrivatePostgres, PrivateRedis
from tests.support.waiting import wait_until

STOP_S_MAX = 30.0
TOOL_MS_MAX = 60
RETRYABLE = 503
TOOLS = ("lookup_order", "check_policy", "email_customer")  #: that a run calls before it asks for an approval


class Balanced(Client):
    """A client of several APIs. `failures` counts what a balancer could not have passed over."""

    def __init__(self, urls: list[str], key: str) -> None:
        super().__init__(urls[0], key)
        self._turns = itertools.cycle(urls)
        self.failures: Counter[str] = Counter()
        self.passed_over_count = 0
        self._http.event_hooks = {"request": [self._route], "response": [self._count]}

    async def _route(self, request: httpx2.Request) -> None:
        url = httpx2.URL(next(self._turns))
        request.url = request.url.copy_with(host=url.host, port=url.port)
        request.headers["host"] = f"{url.host}:{url.port}"

    async def _count(self, response: httpx2.Response) -> None:
        if response.status_code == RETRYABLE and "retry-after" in response.headers:
            self.passed_over_count += 1
        elif response.status_code >= 500:
            self.failures[f"{response.status_code} of {response.request.url.path}"] += 1

    def lost(self, error: Exception) -> None:
        """Note a request that got no answer."""
        if isinstance(error, httpx2.ConnectError):
            self.passed_over_count += 1
        else:
            self.failures[f"{type(error).__name__}: {error}"] += 1


@pytest.mark.parametrize("round_count", [1, pytest.param(10, marks=pytest.mark.soak)])
async def test_nobody_notices_a_deploy(
    launcher: Launcher,
    start_postgres: Callable[..., PrivatePostgres],
    private_redis: PrivateRedis,
    round_count: int,
) -> None:
    """No request fails, no step is lost or doubled, and a stream that was cut is joined again without a gap."""
    postgres = start_postgres()
    with postgres.fresh_database() as url:
        fleet = Fleet(launcher, postgres, private_redis, database_url=url, worker_count=3, api_count=2)
        async with fleet.alive(), Balanced(fleet.urls, fleet.key) as client:
            expected = await play(client, Plot(order_id="uninterrupted"), fleet.effects)
            over = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                playing = [group.create_task(_keep_playing(client, fleet, name, over)) for name in ("a", "b", "c")]
                for number in range(round_count):
                    following = group.create_task(
                        _follow(client, fleet, Plot(order_id=f"streamed-{number}", delay_ms=80))
                    )
                    for each in [*fleet.workers, *fleet.apis]:
                        await _replace(fleet, each)
                    path, event_ids = await following
                    assert event_ids == await _read(fleet.urls[1], fleet.key, path, "0")
                    assert len(event_ids) > len(TOOLS)
                over.set()
            conversations = [each for task in playing for each in task.result()]

            assert client.failures == Counter()
            assert {death.code for death in fleet.deaths} <= {0, -signal.SIGTERM}
            broken = [
                each
                for conversation in conversations
                for each in violations(conversation, fleet.effects(), fleet.deaths, expected)
            ]
            assert broken == []


async def _keep_playing(client: Client, fleet: Fleet, name: str, over: asyncio.Event) -> list[Conversation]:
    """Play one story after the other until the deploy is over."""
    chance = random.Random(name)
    conversations: list[Conversation] = []
    while not over.is_set() or not conversations:
        plot = Plot(order_id=f"{name}-{len(conversations)}", delay_ms=chance.randint(0, TOOL_MS_MAX))
        conversations.append(await play(client, plot, fleet.effects))
    return conversations


async def _replace(fleet: Fleet, each: Mortal) -> None:
    """Stop a process and wait until its replacement answers."""
    count = len(fleet.deaths)
    each.send(signal.SIGTERM)
    await wait_until(lambda: len(fleet.deaths) > count, description="a process to stop", timeout_s=STOP_S_MAX)
    await fleet.answers()


async def _follow(client: Balanced, fleet: Fleet, plot: Plot) -> tuple[str, list[str]]:
    """Follow a run while servers are replaced; its path and the ids of its events."""
    thread_id, run_id = await ask(client, plot)
    path = f"/threads/{thread_id}/runs/{run_id}"
    event_ids: list[str] = []
    for url in itertools.cycle(fleet.urls):
        event_ids += await _read(url, fleet.key, path, event_ids[-1] if event_ids else "0")
        run = await client.get(path)
        if run["status"] not in ("pending", "running"):
            break
    await fleet.answers()
    return path, event_ids + await _read(fleet.urls[0], fleet.key, path, event_ids[-1] if event_ids else "0")


async def _read(url: str, key: str, path: str, last_id: str) -> list[str]:
    """Ids of the events after `last_id`, until this server closes the stream."""
    ids: list[str] = []
    headers = {"x-api-key": key, "last-event-id": last_id}
    async with httpx2.AsyncClient(base_url=url, timeout=STOP_S_MAX, verify=False, headers=headers) as http:
        try:
            async with http.stream("GET", f"{path}/stream", params={"stream_mode": "updates"}) as response:
                async for line in response.aiter_lines():
                    if line.startswith("id: "):
                        ids.append(line.removeprefix("id: "))
        except httpx2.TransportError:
            return ids
    return ids
