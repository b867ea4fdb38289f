"""The database comes back from a backup; Redis, the effects and the clients know what happened since (F28)."""

from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import sql

from tests.crash.client import Client
from tests.crash.fleet import Fleet
from tests.crash.launching import Launcher
from tests.support.scenario import Conversation, Plot, ask, play
from tests.support.servers import PrivatePostgres, PrivateRedis
from tests.support.waiting import wait_until


async def test_a_restored_database_goes_on_from_where_it_was(
    launcher: Launcher, start_postgres: Callable[..., PrivatePostgres], private_redis: PrivateRedis
) -> None:
    """What the backup has is continued, by clients that ask again; keyed effects come again under their old keys.

    What happened after the backup is not known any more, so a step that was paid may be paid again: with the very key
    that the other side saw, for it to play.
    """
    postgres = start_postgres()
    plot = Plot(order_id="restored")
    with postgres.fresh_database() as url:
        fleet = Fleet(launcher, postgres, private_redis, database_url=url, api_count=1)
        async with fleet.running() as client:
            thread_id, run_id = await ask(client, plot)
            await _waits_for_approval(client, thread_id)
        backup = _copied(postgres, url)
        async with fleet.running() as client:
            before = await play(client, plot, fleet.effects)
            later = await play(client, Plot(order_id="after-the-backup"), fleet.effects)
        keys = {line["tool"]: line["idempotency_key"] for line in _of(fleet, plot)}

        # Redis keeps its jobs and streams of runs that never were.
        fleet.move_to(backup)
        async with fleet.running() as client:
            assert await ask(client, plot) == (thread_id, run_id)
            conversation = await play(client, plot, fleet.effects)
            again = await play(client, Plot(order_id="after-the-backup"), fleet.effects)
            unknown = await client.post("/threads/search", {"limit": 100}, idempotency_key="look")
        lines = _of(fleet, plot)
        fleet.close()

    assert _said(conversation) == _said(before)
    assert conversation.verdict["holds"] is True
    assert {line["tool"]: line["idempotency_key"] for line in lines} == keys
    assert again.thread_id != later.thread_id
    assert {each["thread_id"] for each in unknown} == {thread_id, again.thread_id}


async def _waits_for_approval(client: Client, thread_id: str) -> None:
    async def asks() -> bool:
        return bool((await client.get(f"/threads/{thread_id}"))["status"] == "interrupted")

    await wait_until(asks, description="the approval to be asked for", timeout_s=60)


def _copied(postgres: PrivatePostgres, url: str) -> str:
    """The address of a copy of the database, as a backup that was restored is."""
    server, _, name = url.rpartition("/")
    with psycopg.connect(f"{server}/postgres".replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {copy} TEMPLATE {name}").format(
                copy=sql.Identifier(f"{name}_backup"), name=sql.Identifier(name)
            )
        )
    return postgres.url(f"{name}_backup")


def _of(fleet: Fleet, plot: Plot) -> list[dict[str, Any]]:
    return [line for line in fleet.effects() if line["arguments"]["order_id"] == plot.order_id]


def _said(conversation: Conversation) -> list[tuple[str, str]]:
    return [(each["type"], str(each["content"])) for each in conversation.messages]
