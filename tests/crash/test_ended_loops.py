"""A loop that ends unexpectedly ends its process, so that the supervisor restarts it."""

import pytest

from tests.support.service import Service
from tests.support.waiting import wait_until


@pytest.mark.parametrize("name", ["sweep", "task sweep", "fold cache", "housekeeping", "memory upkeep", "memory index"])
async def test_a_process_that_lost_a_loop_ends_and_says_so(name: str) -> None:
    """It exits with 1, and the log names the loop; before, it would have looked alive and found nothing any more."""
    with Service({"THREADMARK_AGENTS": "tests.crash.ending_agents:registry"}) as service:
        said = {"messages": [{"role": "user", "content": f'call end_loop {{"name": "{name}"}}'}]}
        async with service.http() as client:
            await client.post("/runs", json={"assistant_id": "chat", "input": said})
        await wait_until(lambda: not service.is_running(), description="the end of the server", timeout_s=60)
        log = (service.folder / "server.log").read_text()

        assert service.end(service.death_signal) == 1
        assert f"{name} ended without being asked to" in log
