"""A real server that is killed after a recall: what memory answered is taken from the journal."""

import sqlite3
from contextlib import closing
from typing import Any

from tests.support.napping_agents import GO
from tests.support.service import Service
from tests.support.waiting import wait_until


async def journal(service: Service, thread_id: str) -> list[dict[str, Any]]:
    """The entries of a thread."""
    async with service.http() as http:
        return list((await http.get(f"/threads/{thread_id}/journal")).json()["items"])


def asked(service: Service, run_id: str) -> int:
    """How often memory was asked for a run, by memory's own account."""
    with closing(sqlite3.connect(service.data_dir / "memory.db")) as connection:
        (count,) = connection.execute("SELECT count(*) FROM memory_recall WHERE run_ref = ?", (run_id,)).fetchone()
    return int(count)


async def test_a_run_that_goes_on_after_a_kill_does_not_ask_memory_again() -> None:
    """One question in memory's log, one answer in the journal, however often the server dies."""
    with Service({"THREADMARK_AGENTS": "tests.support.napping_agents:registry"}) as service:
        async with service.sdk() as sdk:
            thread_id = (await sdk.threads.create())["thread_id"]
            run = await sdk.runs.create(thread_id, "napper", input={"messages": "the dog\ncall nap"})

        async def naps() -> bool:
            return any(each["kind"] == "model_replied" for each in await journal(service, thread_id))

        await wait_until(naps, description="the tool to be called")
        assert asked(service, run["run_id"]) == 1
        for _ in range(2):
            service.restart()
        (service.data_dir / GO).touch()
        async with service.sdk() as sdk:
            await sdk.runs.join(thread_id, run["run_id"])
        assert asked(service, run["run_id"]) == 1
        assert [each["kind"] for each in await journal(service, thread_id)].count("recalled") == 1
