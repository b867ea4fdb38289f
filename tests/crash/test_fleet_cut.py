"""Every session of a fleet is cut at once while calls that may happen only once are under way: no worker died."""

import asyncio
import signal
from collections.abc import Callable

import psycopg

from tests.crash.chaos import CUT
from tests.crash.client import Client
from tests.crash.fleet import Fleet
from tests.crash.launching import Launcher
from tests.crash.readiness import watch_readiness
from tests.support.pgbouncer import PrivatePgBouncer
from tests.support.scenario import Conversation, Plot, play
from tests.support.scenario_checks import violations
from tests.support.servers import PrivatePostgres, PrivateRedis
from tests.support.waiting import wait_until

STORY_COUNT = 6
ROUND_COUNT = 3
#: Longer than a cut is got over, so that a call that a burial interrupts is under way still.
REFUND_MS = 3_000
STORY_S_MAX = 120.0
Cut = Callable[[], None]


async def _play_through(fleet: Fleet, client: Client, name: str, cut: Cut) -> list[Conversation]:
    """So many stories at once, with a cut when the refund of each is under way."""
    plots = [Plot(order_id=f"{name}-{each}", slow="refund", delay_ms=REFUND_MS) for each in range(STORY_COUNT)]
    async with asyncio.TaskGroup() as group:
        stories = [group.create_task(play(client, each, fleet.effects, within_s=STORY_S_MAX)) for each in plots]

        def refunds() -> int:
            return sum(
                line["tool"] == "refund" and line["arguments"]["order_id"].startswith(f"{name}-")
                for line in fleet.effects()
            )

        await wait_until(lambda: refunds() == STORY_COUNT, description="every refund to be called", timeout_s=60)
        with fleet.unrest.disturbed():
            await asyncio.to_thread(cut)
    return [each.result() for each in stories]


def _far_apart(launcher: Launcher, postgres: PrivatePostgres, redis: PrivateRedis, url: str) -> Fleet:
    """Workers that know of each other by the database alone: a lock file would show that they live."""
    return Fleet(launcher, postgres, redis, database_url=url, worker_count=3, api_count=2, apart=True)


def _terminate(fleet: Fleet) -> None:
    with psycopg.connect(fleet.database_dsn) as connection:
        assert len(connection.execute(CUT).fetchall()) > len(fleet.workers)


def _restart(pooler: PrivatePgBouncer) -> None:
    pooler.end(signal.SIGKILL)
    pooler.start()


async def _cut_again_and_again(fleet: Fleet, cut: Cut) -> None:
    async with fleet.alive() as client:
        expected = await play(client, Plot(order_id="uninterrupted"), fleet.effects)
        async with watch_readiness(fleet) as watch:
            for number in range(ROUND_COUNT):
                conversations = await _play_through(fleet, client, f"cut-{number}", cut)

                broken = [each for found in conversations for each in violations(found, fleet.effects(), [], expected)]
                assert broken == []
                assert [each.resolutions for each in conversations] == [[]] * STORY_COUNT
            await watch.all_ready(fleet.urls)
        assert watch.untrue == []
        assert fleet.deaths == []
        assert client.complaints == []


async def test_calls_under_way_are_not_in_doubt_after_a_cut_of_all_sessions(
    launcher: Launcher, start_postgres: Callable[..., PrivatePostgres], private_redis: PrivateRedis
) -> None:
    """`pg_terminate_backend` of every session: each call is recorded by the worker that made it, and none again."""
    postgres = start_postgres()
    with postgres.fresh_database() as url:
        fleet = _far_apart(launcher, postgres, private_redis, url)
        await _cut_again_and_again(fleet, lambda: _terminate(fleet))


async def test_calls_under_way_are_not_in_doubt_after_a_pooler_restarts(
    launcher: Launcher, start_postgres: Callable[..., PrivatePostgres], private_redis: PrivateRedis
) -> None:
    """A PgBouncer is killed and started: the sessions behind it are gone too, and the workers live."""
    postgres = start_postgres()
    with postgres.fresh_database() as url, PrivatePgBouncer(url, "session") as pooler:
        fleet = _far_apart(launcher, postgres, private_redis, pooler.url)
        await _cut_again_and_again(fleet, lambda: _restart(pooler))
