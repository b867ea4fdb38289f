"""Every sort of fault at once, in a fleet of two APIs and three workers over PostgreSQL and Redis.

All chance in a round comes from its name. CRASH_SEED="4711-17" plays the round of this name alone.
"""

import asyncio
import os
import random
import secrets
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from tests.crash.chaos import FAULTS, Storm
from tests.crash.client import Client
from tests.crash.fleet import Fleet
from tests.crash.launching import Launcher
from tests.crash.readiness import watch_readiness
from tests.crash.stream_client import StreamFollower, stream_errors
from tests.support.scenario import Conversation, Plot, ask, play, read_journal
from tests.support.scenario_checks import violations
from tests.support.servers import PrivatePostgres, PrivateRedis
from tests.support.waiting import wait_until

StartFleet = Callable[..., AbstractAsyncContextManager[tuple[Fleet, Client]]]

CHOSEN = os.environ.get("CRASH_SEED")
STORY_COUNT = 2
TOOL_MS_MAX = 300
EVENTS_OF_A_READER_MAX = 12
#: A story may meet a frozen worker, and a database that is away, one after the other.
STORY_S_MAX = 120.0
ROUNDS_A_LINE = 10


@pytest.fixture
def start_fleet(
    launcher: Launcher, start_postgres: Callable[..., PrivatePostgres], private_redis: PrivateRedis
) -> StartFleet:
    """Start two APIs and three workers; `fsync` as a deployment has it."""

    @asynccontextmanager
    async def start(*, fsync: bool) -> AsyncIterator[tuple[Fleet, Client]]:
        postgres = start_postgres(fsync=fsync)
        with postgres.fresh_database() as url:
            fleet = Fleet(launcher, postgres, private_redis, database_url=url, worker_count=3, api_count=2)
            async with fleet.alive() as client:
                yield fleet, client

    return start


@pytest.mark.parametrize(
    "round_count", [pytest.param(9, id="short"), pytest.param(100, id="100-rounds", marks=pytest.mark.soak)]
)
async def test_a_fleet_outlives_every_sort_of_fault(
    start_fleet: StartFleet,
    tmp_path: Path,
    round_count: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No violation, no 500, no 503 without Retry-After, no untrue `/ready`, no stream with a gap or a duplicate.

    `/ready` is untrue where it says yes of a database that is away, no while all is well, or nothing.
    """
    is_soak, began_s = round_count > len(FAULTS), time.monotonic()
    async with start_fleet(fsync=is_soak) as (fleet, client), Client(fleet.urls[1], fleet.key) as rival:
        expected = await play(client, Plot(order_id="uninterrupted"), fleet.effects)
        storm = Storm(fleet)
        async with watch_readiness(fleet) as watch:
            for number, name in enumerate(_names(round_count, is_soak)):
                broken = await _round(fleet, storm, (client, rival), tmp_path, name, expected)
                broken += [*client.complaints, *rival.complaints, *watch.untrue]
                assert broken == [], f"replay with CRASH_SEED='{name}':\n" + "\n".join(broken)
                if is_soak and (number + 1) % ROUNDS_A_LINE == 0:
                    with capsys.disabled():
                        line = ", ".join(f"{fault} {count}" for fault, count in sorted(storm.counts.items()))
                        print(
                            f"\n{time.monotonic() - began_s:5.0f} s: {number + 1} rounds; {line}; {watch}", flush=True
                        )
            await watch.all_ready(fleet.urls)
            assert watch.untrue == []

    assert CHOSEN is not None or set(storm.counts) == set(FAULTS)


def _names(round_count: int, is_soak: bool) -> list[str]:
    if CHOSEN is not None:
        return [CHOSEN]
    series = str(secrets.randbelow(10**8)) if is_soak else "always"
    return [f"{series}-{number}" for number in range(round_count)]


async def _round(
    fleet: Fleet,
    storm: Storm,
    clients: tuple[Client, Client],
    folder: Path,
    name: str,
    expected: Conversation,
) -> list[str]:
    """Play a few stories and follow their streams while faults strike; the promises that were broken."""
    chance, death_count = random.Random(name), len(fleet.deaths)
    number = int(name.rpartition("-")[2])
    plots = [_plot(f"{name}-{each}", chance) for each in range(STORY_COUNT)]
    # Each sort of fault in turn, and now and then another one beside it.
    faults = [list(FAULTS)[number % len(FAULTS)]]
    faults += chance.sample(list(FAULTS), chance.choice([0, 0, 1, 2]))
    async with asyncio.TaskGroup() as group:
        playing = [group.create_task(_play_and_follow(fleet, clients, folder, plot, chance)) for plot in plots]
        for fault in faults:
            group.create_task(storm.strike(fault, random.Random(f"{name}-{fault}")))

    deaths, broken = fleet.deaths[death_count:], []
    for conversation, errors in (task.result() for task in playing):
        broken += [*violations(conversation, fleet.effects(), deaths, expected), *errors]
    return broken


async def _play_and_follow(
    fleet: Fleet, clients: tuple[Client, Client], folder: Path, plot: Plot, chance: random.Random
) -> tuple[Conversation, list[str]]:
    client, rival = clients
    thread_id, run_id = await ask(client, plot)
    port = fleet.ports[chance.randrange(len(fleet.ports))]
    received_file = folder / f"{plot.order_id}.received"
    replayed_file = folder / f"{plot.order_id}.replayed"
    follower = StreamFollower(client, port, fleet.key, received_file, chance, EVENTS_OF_A_READER_MAX)
    following = asyncio.create_task(follower.follow(thread_id, run_id))
    conversation = await play(client, plot, fleet.effects, rival=rival, within_s=STORY_S_MAX)
    received = await following
    again = await StreamFollower(client, port, fleet.key, replayed_file, chance).follow(thread_id, run_id)
    return conversation, stream_errors(received, again, server_died=True)


def _plot(order_id: str, chance: random.Random) -> Plot:
    return Plot(
        order_id=order_id,
        delay_ms=chance.randint(0, TOOL_MS_MAX),
        approve_by=chance.choice(["answer", "resume", "racing", "racing"]),
        settle_by=chance.choice(["looking", "verify"]),
    )


@pytest.mark.parametrize(
    "approval_count", [pytest.param(12, id="short"), pytest.param(200, id="200-approvals", marks=pytest.mark.soak)]
)
async def test_parked_approvals_outlive_a_restart_of_everything(start_fleet: StartFleet, approval_count: int) -> None:
    """Each question is still there, each answer reaches its own, and each refund is paid once."""
    plots = [Plot(order_id=f"parked-{number}") for number in range(approval_count)]
    async with start_fleet(fsync=True) as (fleet, client):
        expected = await play(client, Plot(order_id="uninterrupted"), fleet.effects)
        parked = [await ask(client, plot) for plot in plots]
        for thread_id, _ in parked:
            await _until(client, thread_id, "interrupted")

        death_count = len(fleet.deaths)
        for each in [*fleet.apis, *fleet.workers]:
            each.send(signal.SIGKILL)
        await asyncio.to_thread(fleet.break_database)
        await asyncio.to_thread(fleet.redis.restart)
        await fleet.answers()
        deaths = fleet.deaths[death_count:]

        conversations = [await play(client, plot, fleet.effects, within_s=STORY_S_MAX) for plot in plots]
        broken = [
            each
            for conversation in conversations
            for each in violations(conversation, fleet.effects(), deaths, expected)
        ]

    assert broken == []
    assert client.complaints == []


@pytest.mark.parametrize(
    "run_count", [pytest.param(12, id="short"), pytest.param(100, id="100-runs", marks=pytest.mark.soak)]
)
async def test_queued_runs_of_one_thread_keep_their_order_through_kills(
    start_fleet: StartFleet, run_count: int
) -> None:
    """Every message is answered once, in the order in which its run was accepted, whichever process is killed."""
    chance = random.Random("queued")
    async with start_fleet(fsync=False) as (fleet, client):
        thread = await client.post("/threads", {}, idempotency_key="queued-thread")
        path = f"/threads/{thread['thread_id']}"
        for number in range(run_count):
            said = {"messages": [{"role": "user", "content": f"Message {number}"}]}
            run = {"assistant_id": "chat", "input": said, "multitask_strategy": "enqueue"}
            await client.post(f"{path}/runs", run, idempotency_key=f"queued-{number}")
            if chance.random() < 0.3:
                chance.choice(fleet.workers).send(signal.SIGKILL)
        await _until(client, thread["thread_id"], "idle")
        state = await client.get(f"{path}/state")
        verdict = await client.get(f"{path}/journal/verify")
        journal = await read_journal(client, thread["thread_id"])

    spoken = [(each["type"], each["content"].splitlines()[0]) for each in state["values"]["messages"]]
    wanted = [pair for number in range(run_count) for pair in _exchange(number)]
    assert spoken == wanted
    assert verdict["holds"] is True
    assert sum(entry["kind"] == "run_settled" for entry in journal) == run_count
    assert client.complaints == []


def _exchange(number: int) -> list[tuple[str, str]]:
    return [("human", f"Message {number}"), ("ai", f"You said: Message {number}")]


async def _until(client: Client, thread_id: str, status: str) -> None:
    async def is_there() -> bool:
        return bool((await client.get(f"/threads/{thread_id}"))["status"] == status)

    await wait_until(is_there, description=f"thread {thread_id} to be {status}", timeout_s=STORY_S_MAX, poll_s=0.1)
