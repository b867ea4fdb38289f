"""One idempotency key at two openings of memory's database: the later write waits, is answered, or is refused."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, select

from tests.support.receipt_writes import US, Slow, named
from threadmark.memory import AnsweredBefore, Database, ReceiptInProgress, ReceiptReused, migrate
from threadmark.memory.store.job_tables import receipt
from threadmark.memory.store.receipts import write_once


@pytest.fixture(params=["sqlite", "postgresql"])
async def databases(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Database, Database]]:
    """Two openings of one database of memory."""
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/memory.db" if is_sqlite else request.getfixturevalue("postgres_url")
    migrate(url)
    opened = Database.open(url), Database.open(url)
    yield opened
    for each in opened:
        await each.close()


async def test_the_later_of_two_waits_for_the_commit_of_the_first(databases: tuple[Database, Database]) -> None:
    """And gets what the first has made; its own unit does not run."""
    first, second = databases
    slow = Slow()
    making = asyncio.ensure_future(write_once(first, slow.unit, **named("acme", "k")))
    await slow.begun()
    later = asyncio.ensure_future(write_once(second, _must_not_run, **named("acme", "k")))
    done, _ = await asyncio.wait([later], timeout=0.3)
    assert not done
    slow.go_on.set()

    assert await making == "made"
    with pytest.raises(AnsweredBefore) as answered:
        await later
    assert answered.value.answer == b"made"


async def test_when_the_first_fails_the_later_one_makes_the_change(databases: tuple[Database, Database]) -> None:
    """What was undone has left no answer."""
    first, second = databases
    slow = Slow()

    def fails(connection: Connection) -> str:
        slow.unit(connection)
        raise LookupError("no such thing")

    failing = asyncio.ensure_future(write_once(first, fails, **named("acme", "k")))
    await slow.begun()
    later = asyncio.ensure_future(write_once(second, lambda _: "better", **named("acme", "k", digest="other")))
    slow.go_on.set()

    with pytest.raises(LookupError):
        await failing
    assert await later == "better"


async def test_keys_are_a_tenants_own_and_live_for_a_day(databases: tuple[Database, Database]) -> None:
    """Another tenant's key is another one; after its day a key names a new request, swept or not."""
    first, second = databases
    day = 24 * 3600 * US
    made = partial(write_once, unit=lambda _: "made")
    await made(first, **named("acme", "k"))
    await made(second, **named("other", "k"))
    with pytest.raises(ReceiptReused):
        await made(second, **named("acme", "k", digest="other"))
    with pytest.raises(AnsweredBefore):
        await made(second, **named("acme", "k", at=day))

    await made(second, **named("acme", "k", digest="other", at=day + US))

    assert await first.read(_receipt_count) == 2


async def test_a_held_key_is_refused_after_the_wait(postgres_url: str) -> None:
    """The wait is bounded, and its unit has not run."""
    migrate(postgres_url)
    first, second = Database.open(postgres_url), Database.open(postgres_url)
    slow = Slow()
    making = asyncio.ensure_future(write_once(first, slow.unit, **named("acme", "k")))
    await slow.begun()
    try:
        with pytest.raises(ReceiptInProgress):
            await write_once(second, _must_not_run, **named("acme", "k", wait_s=0.1))
    finally:
        slow.go_on.set()
        await making
        await first.close()
        await second.close()


def _must_not_run(_: Connection) -> str:
    raise AssertionError("the change was made before")


def _receipt_count(connection: Connection) -> int:
    return int(connection.scalar(select(func.count()).select_from(receipt)) or 0)
