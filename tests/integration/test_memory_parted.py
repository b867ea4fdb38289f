"""After a split each name has the timeline that it would have had if the two had never been one."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, create_engine, event, update

from tests.support.folded_names import believed
from tests.support.memory_house import CHANGE, HOME, NOW, draft, house, remembered
from threadmark.memory import Change, Database, MemoryIndex, Recollection, Scope, Verdict, merged_chains, split_chain
from threadmark.memory.store.tables import assertion
from threadmark.memory.text.terms import folded
from threadmark.memory.write import preparation


async def test_what_was_retracted_or_has_expired_is_not_believed_again(tmp_path: Path) -> None:
    """A split brings back what the other name ended, and nothing that ended otherwise."""
    url = f"sqlite:///{tmp_path}/memory.db"
    async with house(url, MemoryIndex()) as memory:
        with folding():
            (oslo,) = await say(memory, "Pena", "Oslo", 30)
            await memory.retract(oslo.assertion_id, scope=HOME, reason="wrong", change=CHANGE)
            await say(memory, "Pena", "Graz", 25, expires_at=NOW + timedelta(days=1))
            await say(memory, "Pe\u00f1a", "Bergen", 20)
        apart(url)
        database = Database.open(url)
        later = Change(by="tester", now=NOW + timedelta(days=2))
        await split_chain(database, HOME, "Pena", "city", change=later)
        await database.close()

        assert [value for value, *_ in await believed(memory, "Pena") if value != "Graz"] == []
        assert await memory.held_at("Pena", "city", scope=HOME, valid_at=NOW) == []
        assert await believed(memory, "Pe\u00f1a") == [("Bergen", 20, None)]


NAMES = ("Pena", "Pe\u00f1a")
#: Who, and since how many days. What is said is another each time: a repetition keeps a statement of its own.
SAYINGS = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(1, 9)), max_size=8)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, Recollection, str]]:
    """One memory for many examples: each has a tenant of its own."""
    url = f"sqlite:///{tmp_path_factory.mktemp('merged')}/memory.db"
    with asyncio.Runner() as runner:
        context = house(url, MemoryIndex())
        memory = runner.run(context.__aenter__())
        yield runner, memory, url
        runner.run(context.__aexit__(None, None, None))


@settings(max_examples=60, deadline=None)
@given(sayings=SAYINGS)
def test_after_a_split_it_is_as_if_names_had_been_told_apart(
    opened: tuple[asyncio.Runner, Recollection, str], sayings: list[tuple[str, int]]
) -> None:
    """Whatever was said of two names that were one: each has the timeline that it has where they never were."""
    runner, memory, url = opened

    async def timelines(*, folded_first: bool) -> dict[str, list[tuple[Any, int, int | None]]]:
        scope = Scope(tenant_id=str(uuid4()), namespace=("n",))
        with folding() if folded_first else nullcontext():
            for number, (name, day) in enumerate(sayings):
                await say(memory, name, f"place {number}", day, scope=scope)
        if folded_first:
            apart(url, scope.tenant_id)
            database = Database.open(url)
            await split_chain(database, scope, "Pena", "city", change=CHANGE)
            assert await merged_chains(database, scope.tenant_id) == []
            await database.close()
        return {name: await believed(memory, name, scope=scope) for name in NAMES}

    assert runner.run(timelines(folded_first=True)) == runner.run(timelines(folded_first=False))


async def say(
    memory: Recollection, name: str, place: str, day: int, *, scope: Scope = HOME, **fields: Any
) -> list[Verdict]:
    """That somebody lives somewhere since some days ago."""
    at = NOW - timedelta(days=day)
    said = draft(f"{name} in {place}", scope=scope, at=at, subject=name, attribute="city", value=place, **fields)
    return await remembered(memory, said, scope=scope)


@contextmanager
def folding() -> Iterator[None]:
    """Names are compared as older versions did."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparation, "identity_key", folded)
        yield


def apart(url: str, tenant_id: str = HOME.tenant_id) -> None:
    """Write the keys anew, as bringing the database up to date does."""
    engine = create_engine(url)
    with engine.begin() as connection:
        own = update(assertion).where(assertion.c.tenant_id == tenant_id)
        connection.execute(own.values(subject_key=assertion.c.subject))
    engine.dispose()


async def test_a_split_reads_the_place_of_its_chain_alone(tmp_path: Path) -> None:
    """However many chains are merged elsewhere, the writer's turn is not longer: it runs the same statements."""
    url = f"sqlite:///{tmp_path}/memory.db"
    counts: list[int] = []
    async with house(url, MemoryIndex()) as memory:
        for elsewhere_count in (0, 3):
            scope = Scope(tenant_id="acme", namespace=("n", str(elsewhere_count)))
            others = [Scope(tenant_id="acme", namespace=("others", str(at))) for at in range(elsewhere_count)]
            with folding():
                for place in (scope, *others):
                    await say(memory, "Pena", "Oslo", 9, scope=place)
                    await say(memory, "Pe\u00f1a", "Bergen", 5, scope=place)
            apart(url)
            database = Database.open(url)
            with counting_statements() as statements:
                assert len(await split_chain(database, scope, "Pena", "city", change=CHANGE)) == 2
            await database.close()
            counts.append(len(statements))

    assert counts[0] == counts[1]


async def test_a_chain_that_was_parted_meanwhile_is_left_alone(tmp_path: Path) -> None:
    """Two commands that begin together part it once: the second looks again under the locks."""
    url = f"sqlite:///{tmp_path}/memory.db"
    async with house(url, MemoryIndex()) as memory:
        with folding():
            await say(memory, "Pena", "Oslo", 9)
            await say(memory, "Pe\u00f1a", "Bergen", 5)
        apart(url)
        databases = [Database.open(url) for _ in range(2)]

        made = await asyncio.gather(*(split_chain(each, HOME, "Pena", "city", change=CHANGE) for each in databases))

        for each in databases:
            await each.close()
        assert sorted(map(len, made)) == [0, 2]


@contextmanager
def counting_statements() -> Iterator[list[str]]:
    """Every statement that this process runs meanwhile."""
    statements: list[str] = []

    def noted(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    event.listen(Engine, "before_cursor_execute", noted)
    try:
        yield statements
    finally:
        event.remove(Engine, "before_cursor_execute", noted)
