"""Keeping a source apart, letting it back and approving one statement are each whole, or have not happened."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, select

from tests.support.memory_house import CHANGE, HOME, NOW, city, draft, house, moment, remembered
from threadmark.memory import Origin, Recollection, Selector, Trust
from threadmark.memory.store.job_tables import outbox
from threadmark.memory.store.tables import assertion, evidence, quarantine, succession
from threadmark.memory.write.new_assertions import remember
from threadmark.memory.write.preparation import prepare_all

POINT_COUNT_MAX = 200
SOURCE = Selector(actor="Mallory")


class Torn(Exception):
    """What breaks a change off in its middle."""


@pytest.fixture(params=["sqlite", "postgresql"])
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Recollection]:
    """A memory that nothing works at but the test."""
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/memory.db" if is_sqlite else request.getfixturevalue("postgres_url")
    async with house(url) as opened:
        yield opened


@contextmanager
def torn_before(number: int) -> Iterator[list[str]]:
    """Break off what is written before its statement of this number, and let no more through; the commits."""
    commits: list[str] = []
    seen = 0

    def count(*arguments: Any) -> None:
        nonlocal seen
        if arguments[2].startswith(("INSERT", "UPDATE", "DELETE")):
            seen += 1
            if seen == number:
                raise Torn

    def committed(_: Any) -> None:
        commits.append("commit")

    event.listen(Engine, "before_cursor_execute", count)
    event.listen(Engine, "commit", committed)
    try:
        yield commits
    finally:
        event.remove(Engine, "before_cursor_execute", count)
        event.remove(Engine, "commit", committed)


async def rows(memory: Recollection) -> dict[str, list[Any]]:
    """Everything that a change of belief may touch."""
    tables = (assertion, evidence, outbox, quarantine, succession)
    return await memory._database.read(
        lambda connection: {
            each.name: [tuple(row) for row in connection.execute(select(each).order_by(each.c.number))]
            for each in tables
        }
    )


async def whole(memory: Recollection, change: Callable[[], Awaitable[Any]]) -> Any:
    """What a change made, after it was broken off before each of its statements and had changed nothing."""
    before = await rows(memory)
    for number in range(1, POINT_COUNT_MAX):
        with torn_before(number) as commits:
            try:
                made = await change()
            except Torn:
                pass
            else:
                assert number > 2, "nothing was broken off"
                assert len(commits) == 1
                return made
        assert await rows(memory) == before, f"half a change is left before statement {number}"
    raise AssertionError("the change does not end")


async def test_a_source_is_kept_apart_and_let_back_as_a_whole(memory: Recollection) -> None:
    """All that rests on it in one commit, also what takes its place among other beliefs when it comes back."""
    mallory = [Origin(thread_ref="t", message_ref=f"m{number}", actor="Mallory", at=NOW) for number in range(3)]
    await remembered(memory, city("Oslo", origin=mallory[0]), draft("likes tea", origin=mallory[1]))
    await remembered(memory, draft("drinks mate", origin=mallory[2]), draft("likes cake", origin=moment(9)))

    held, held_count = await whole(memory, lambda: memory.quarantine(SOURCE, tenant_id="acme", reason="odd", now=NOW))
    assert held_count == 3
    await remembered(memory, city("Bergen", origin=moment(10)))
    released = await whole(memory, lambda: memory.release(held, tenant_id="acme", now=NOW))

    assert released == 3
    assert {each.text for _, each in await memory.list(scope=HOME)} >= {"likes tea", "drinks mate", "likes cake"}


async def test_what_another_server_is_just_remembering_is_kept_apart_too(postgres_url: str) -> None:
    """Neither sees what the other has not committed: a hold waits for what is being remembered, and takes it along."""
    async with house(postgres_url) as first, house(postgres_url) as second:
        go_on, has_begun = threading.Event(), threading.Event()
        items = await prepare_all([draft("likes tea", origin=Origin(actor="Mallory"))], HOME, NOW, [None])

        def slowly(connection: Connection) -> None:
            remember(connection, items)
            has_begun.set()
            assert go_on.wait(60)

        remembering = asyncio.ensure_future(first._database.write(slowly))
        assert await asyncio.to_thread(has_begun.wait, 30)
        holding = asyncio.ensure_future(second.quarantine(SOURCE, tenant_id="acme", reason="odd", now=NOW))
        done, _ = await asyncio.wait([holding], timeout=0.3)
        assert not done
        go_on.set()
        await remembering

        assert (await holding)[1] == 1
        assert await first.list(scope=HOME) == []


async def test_a_statement_is_approved_as_a_whole(memory: Recollection) -> None:
    """It is believed and shown in one commit, in the place of what it overrules."""
    await remembered(memory, city("Oslo"))
    (verdict,) = await remembered(memory, city("Bergen", trust=Trust.WEB, asserted_by="fetch"))

    approved = await whole(memory, lambda: memory.approve(verdict.assertion_id, scope=HOME, change=CHANGE))

    assert (approved.text, approved.hold) == ("lives in Bergen", "")
