"""An import that ends early: refused, broken off, dead or frozen. Nothing is left of it, and another may come."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.memory_house import NOW, city, draft, house, remembered, texts
from tests.support.staged_imports import TENANT, exported_elsewhere, row_counts, standing_import
from threadmark.memory import (
    Imported,
    ImportGivenUp,
    ImportUnderWay,
    Recollection,
    Refused,
    Scope,
)
from threadmark.memory.imports import importer


@pytest.fixture(params=["sqlite", "postgresql"])
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Recollection]:
    """Both databases."""
    url = f"sqlite:///{tmp_path}/memory.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    async with house(url) as opened:
        yield opened


@pytest.fixture(autouse=True)
def in_small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two lines a transaction, so that every import here takes several."""
    monkeypatch.setattr(importer, "LINE_COUNT_MIN", 2)
    monkeypatch.setattr(importer, "LINE_COUNT_MAX", 2)


async def listed(memory: Recollection) -> list[Any]:
    """What is believed now."""
    return [each for _, each in await memory.list(scope=TENANT)]


@pytest.mark.parametrize("at_end", [False, True], ids=["a line", "the client"])
async def test_an_import_that_fails_leaves_nothing(memory: Recollection, tmp_path: Path, at_end: bool) -> None:
    """Refused at its last line, or cancelled after it: every table is as it was."""
    await remembered(memory, draft("likes tea"))
    lines = await exported_elsewhere(tmp_path, city("Rome"), draft("likes cake"))
    before = await row_counts(memory)

    if at_end:
        async with standing_import(memory, lines, TENANT) as standing:
            assert await row_counts(memory) != before
            standing.task.cancel()
            with suppress(asyncio.CancelledError):
                await standing.task
    else:
        with pytest.raises(Refused, match=f"line {len(lines) + 1}"):
            await memory.import_([*lines, "{"], scope=TENANT)

    assert await row_counts(memory) == before


async def dead_import(memory: Recollection, lines: list[str]) -> None:
    """What an import leaves whose process ended before it was published."""
    removed = memory._importer._removed

    async def die(_job: int) -> None:
        return None

    memory._importer._removed = die  # type: ignore[method-assign, assignment]
    async with standing_import(memory, lines, TENANT) as standing:
        standing.task.cancel()
        with suppress(asyncio.CancelledError):
            await standing.task
    memory._importer._removed = removed  # type: ignore[method-assign]


async def test_what_a_dead_import_left_is_swept(memory: Recollection, tmp_path: Path) -> None:
    """After a minute in which no line of it was staged; until then nobody else of the tenant imports."""
    lines = await exported_elsewhere(tmp_path, city("Rome"), draft("likes cake"))
    before = await row_counts(memory)
    await dead_import(memory, lines)
    with pytest.raises(ImportUnderWay):
        await memory.import_(lines, scope=TENANT)
    await memory.sweep(now=NOW, recalls_before=NOW - timedelta(days=9))
    assert await row_counts(memory) != before

    memory._importer._clock = lambda: NOW + timedelta(seconds=61)
    await memory.sweep(now=NOW, recalls_before=NOW - timedelta(days=9))

    assert await row_counts(memory) == before


async def test_a_new_import_takes_the_place_of_a_dead_one(memory: Recollection, tmp_path: Path) -> None:
    """It removes what is left of it first, and is whole."""
    lines = await exported_elsewhere(tmp_path, city("Rome"), draft("likes cake"))
    await dead_import(memory, lines)
    memory._importer._clock = lambda: NOW + timedelta(seconds=61)

    done = await memory.import_(lines, scope=TENANT)

    assert (done.added["assertion"], dict(done.known)) == (2, {})
    assert len(await listed(memory)) == 2


async def test_an_import_that_was_taken_for_dead_adds_nothing_any_more(memory: Recollection, tmp_path: Path) -> None:
    """It was frozen; another one took its place. It says that it was given up, and the other one is whole."""
    lines = await exported_elsewhere(tmp_path, city("Rome"), draft("likes cake"))

    async with standing_import(memory, lines, TENANT) as frozen:
        memory._importer._clock = lambda: NOW + timedelta(seconds=61)
        await memory.import_(lines, scope=TENANT)
        counts = await row_counts(memory)
        with pytest.raises(ImportGivenUp):
            await frozen.end()

    assert await row_counts(memory) == counts
    assert len(await listed(memory)) == 2


async def test_the_index_gets_an_import_whose_process_ended_after_its_publication(
    memory: Recollection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next sweep finishes it."""
    lines = await exported_elsewhere(tmp_path, draft("likes cake"))
    queued = memory._importer._queued

    async def die(_job: int) -> None:
        raise asyncio.CancelledError

    memory._importer._queued = die  # type: ignore[method-assign, assignment]
    with pytest.raises(asyncio.CancelledError):
        await memory.import_(lines, scope=TENANT)
    memory._importer._queued = queued  # type: ignore[method-assign]

    await memory.sweep(now=NOW, recalls_before=NOW - timedelta(days=9))
    await memory.index_pending()

    assert await texts(memory, "likes") == ["likes cake"]
    assert "memory_import" not in await row_counts(memory)


async def test_two_imports_of_one_tenant_do_not_mix(memory: Recollection, tmp_path: Path) -> None:
    """The second one is refused for now; another tenant's is not."""
    lines = await exported_elsewhere(tmp_path, city("Rome"))

    async with standing_import(memory, lines, TENANT) as standing:
        with pytest.raises(ImportUnderWay):
            await memory.import_(lines, scope=TENANT)
        other: Imported = await memory.import_(lines[:2], scope=Scope(tenant_id="other", namespace=()))
        assert other.added == {"attribute": 1}
        assert (await standing.end()).added["assertion"] == 1
