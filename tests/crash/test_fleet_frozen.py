"""A host that freezes in the middle of a step and wakes long after its lease: it must not move (F08, C14)."""

import asyncio
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.crash.client import Client
from tests.crash.fleet import Fleet
from tests.crash.launching import Launcher
from tests.crash.supervised_process import Mortal
from tests.support.scenario import Plot, ask, play, read_journal
from tests.support.scenario_checks import violations
from tests.support.servers import PrivatePostgres, PrivateRedis
from tests.support.waiting import wait_until

SLOW_MS = 1_500
#: What is late for a machine that does other things too; the bound itself is lease time plus one sweep.
TAKEOVER_S_MAX = 30.0


@pytest.mark.parametrize("tool", ["lookup_order", "refund"])
async def test_a_frozen_worker_is_replaced_and_does_nothing_when_it_wakes(
    launcher: Launcher, start_postgres: Callable[..., PrivatePostgres], private_redis: PrivateRedis, tool: str
) -> None:
    """Another worker finishes the story; the one that wakes commits nothing and starts nothing, and serves again."""
    plot = Plot(order_id=f"frozen-{tool}", slow=tool, delay_ms=SLOW_MS)
    postgres = start_postgres()
    with postgres.fresh_database() as url:
        fleet = Fleet(launcher, postgres, private_redis, database_url=url)
        async with fleet.alive() as client:
            expected = await play(client, Plot(order_id="uninterrupted"), fleet.effects)
            playing = asyncio.create_task(play(client, plot, fleet.effects))
            frozen = await _in_the_middle_of(client, fleet, plot, tool)

            frozen.send(signal.SIGSTOP)
            conversation = await playing
            effects, journal = fleet.effects(), await read_journal(client, conversation.thread_id)
            frozen.send(signal.SIGCONT)
            await wait_until(
                lambda: "was declared dead" in frozen.log, description="the zombie to notice", timeout_s=TAKEOVER_S_MAX
            )
            # Its own next run is behind whatever it still had to do.
            greeted = await play(client, Plot(order_id="afterwards"), fleet.effects)

            assert violations(conversation, fleet.effects(), fleet.deaths, expected) == []
            assert violations(greeted, fleet.effects(), fleet.deaths, expected) == []
            assert await read_journal(client, conversation.thread_id) == journal
            assert _of(fleet.effects(), plot) == _of(effects, plot)


async def _in_the_middle_of(client: Client, fleet: Fleet, plot: Plot, tool: str) -> Mortal:
    """The worker that calls the tool, once it has been called."""
    thread_id, _ = await ask(client, plot)
    await wait_until(
        lambda: any(line["tool"] == tool for line in _of(fleet.effects(), plot)),
        description=f"a call of {tool}",
        timeout_s=TAKEOVER_S_MAX,
    )
    turns = [each for each in await read_journal(client, thread_id) if each["kind"] == "turn_started"]
    holder = fleet.holder(turns[-1]["worker_id"])
    assert holder is not None
    return holder


def _of(lines: list[dict[str, Any]], plot: Plot) -> list[dict[str, Any]]:
    return [line for line in lines if line["arguments"]["order_id"] == plot.order_id]
