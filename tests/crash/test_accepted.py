"""What was accepted exists: an answer of 2xx outlives the server that gave it."""

import asyncio
import signal

import httpx2
import pytest

from tests.crash.client import Client
from tests.crash.doomed import DoomedServer
from tests.crash.launching import Launcher

ASKED_COUNT = 4
LANE_COUNT = 2


@pytest.mark.parametrize("round_count", [40, pytest.param(500, marks=pytest.mark.soak)])
async def test_an_accepted_run_exists_after_a_kill_right_behind_the_answer(
    launcher: Launcher, round_count: int
) -> None:
    """Of the runs that are asked for at once, those that were answered with 2xx before the kill are all there (F07)."""
    async with asyncio.TaskGroup() as group:
        thread_locks = [
            group.create_task(_accepted_count(launcher, round_count // LANE_COUNT)) for _ in range(LANE_COUNT)
        ]

    assert sum(lane.result() for lane in thread_locks) >= round_count


async def _accepted_count(launcher: Launcher, round_count: int) -> int:
    """How many runs were accepted; each was looked for in the next server and found."""
    accepted_count = 0
    async with DoomedServer(launcher) as server:
        await server.start()
        for number in range(round_count):
            accepted = await _accepted_before_the_kill(server, number)
            await server.start()
            async with Client(server.url, server.key) as client:
                for thread_id, run_id in accepted:
                    run = await client.get(f"/threads/{thread_id}/runs/{run_id}")
                    assert run["run_id"] == run_id
            accepted_count += len(accepted)
    return accepted_count


async def _accepted_before_the_kill(server: DoomedServer, number: int) -> list[tuple[str, str]]:
    """Threads and runs whose acceptance was answered; the server is killed as soon as the first one is."""
    headers = {"x-api-key": server.key}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=20, verify=False) as http:
        asking = [asyncio.create_task(_ask(http, f"round {number}, run {index}")) for index in range(ASKED_COUNT)]
        await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        server.send(signal.SIGKILL)
        answers = await asyncio.gather(*asking)
    await server.gone()
    return [each for each in answers if each is not None]


async def _ask(http: httpx2.AsyncClient, text: str) -> tuple[str, str] | None:
    run = {"assistant_id": "chat", "input": {"messages": [{"role": "user", "content": text}]}}
    try:
        thread = await http.post("/threads", json={})
        response = await http.post(f"/threads/{thread.json()['thread_id']}/runs", json=run)
    except httpx2.TransportError:
        return None
    assert response.is_success, response.text
    return response.json()["thread_id"], response.json()["run_id"]
