"""Workers that are found dead: the finder has every worker look for what they held, and not itself alone."""

from dataclasses import replace
from pathlib import Path

from sqlalchemy import Connection

from tests.integration.cluster.hands import WORLD, Deployment
from tests.support.servers import PrivateRedis
from tests.support.waiting import wait_until
from threadmark.state import RunStatus, claim
from threadmark.state.runs.worker_leases import register

#: Longer than the test waits: no sweep finds a death that was not announced.
SWEEP_S = 600.0
LEASE_S = 600.0


def _die_with_a_run(connection: Connection) -> None:
    register(connection, "gone", LEASE_S, "{}")
    assert len(claim(connection, "gone", ["chat"], 1)) == 1


async def test_a_death_is_announced_to_every_worker(
    postgres_url: str, private_redis: PrivateRedis, tmp_path: Path
) -> None:
    """The finder has no room, and the other has it and looks for no deaths."""
    settings = {"THREADMARK_SWEEP_S": str(SWEEP_S)}
    async with (
        Deployment.over(tmp_path, postgres_url, private_redis.url, **settings) as deployment,
        deployment.worker() as other,
        deployment.worker() as finder,
    ):
        assert other.worker is not None
        assert finder.worker is not None
        await other.worker._deaths.stop()
        finder.worker._pace = replace(finder.worker._pace, turn_count_max=0)
        run = await deployment.say('call note {"label": "taken over"}', notify=False)
        await deployment.api.database.write(_die_with_a_run)

        await deployment.becomes(run, RunStatus.SUCCESS)
        await wait_until(lambda: WORLD.calls["taken over"] == 1, description="the call")
