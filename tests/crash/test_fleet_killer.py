"""A run that kills its workers, beside runs that do nothing but take their time."""

import json
from collections.abc import Callable
from typing import Any

from tests.crash.client import Client
from tests.crash.fleet import Fleet
from tests.crash.launching import Launcher
from tests.support.servers import PrivatePostgres, PrivateRedis
from tests.support.waiting import wait_until

AGENTS = "tests.crash.killing_agents:registry"
INNOCENT_COUNT = 6
#: Longer than it takes a worker to begin the killer's step: beside it no innocent run gets anywhere.
LONG_S = 2.5
SETTLED_S_MAX = 180.0


async def _ask(client: Client, name: str, tool: str, **arguments: Any) -> str:
    thread = await client.post("/threads", {}, idempotency_key=f"{name}-thread")
    content = f"call {tool} {json.dumps(arguments)}"
    body = {"assistant_id": "chat", "input": {"messages": [{"role": "user", "content": content}]}}
    run = await client.post(f"/threads/{thread['thread_id']}/runs", body, idempotency_key=f"{name}-run")
    return f"/threads/{thread['thread_id']}/runs/{run['run_id']}"


async def test_a_run_that_kills_its_workers_is_condemned_alone(
    launcher: Launcher, start_postgres: Callable[..., PrivatePostgres], private_redis: PrivateRedis
) -> None:
    """Its neighbours die with it a few times; then each is tried alone in a worker, and the innocent get further."""
    postgres = start_postgres()
    with postgres.fresh_database() as url:
        fleet = Fleet(launcher, postgres, private_redis, database_url=url, THREADMARK_AGENTS=AGENTS)
        async with fleet.alive() as client:
            killer = await _ask(client, "killer", "die")
            innocents = [
                await _ask(client, f"innocent-{number}", "take_time", seconds=LONG_S)
                for number in range(INNOCENT_COUNT)
            ]

            async def are_over() -> bool:
                runs = [await client.get(each) for each in (killer, *innocents)]
                return all(each["status"] not in ("pending", "running") for each in runs)

            await wait_until(are_over, description="every run to end", timeout_s=SETTLED_S_MAX)
            condemned, *others = [await client.get(each) for each in (killer, *innocents)]

    assert (condemned["status"], condemned["error"] is not None) == ("error", True)
    assert [each["status"] for each in others] == ["success"] * INNOCENT_COUNT
