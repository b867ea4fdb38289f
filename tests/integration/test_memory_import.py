"""An import under way: others read and write beside it, and see none of it before they see all of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.memory_house import CHANGE, HOME, NOW, city, draft, house, moment, question, remembered, texts
from tests.support.staged_imports import TENANT, exported_elsewhere, row_counts, standing_import
from threadmark.memory import (
    Cardinality,
    Forget,
    IndexUnavailable,
    Recollection,
    Refused,
    Scope,
    Selector,
    UnknownAssertion,
    Which,
)
from threadmark.memory.imports import importer, staging

ANNS = Scope(tenant_id="acme", namespace=("users", "ann"))


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


def ids_in(lines: list[str], word: str) -> list[str]:
    """The ids of the assertions that say a word."""
    rows = [json.loads(line)["row"] for line in lines if '"kind":"assertion"' in line and word in line]
    return [row["assertion_id"] for row in rows]


def number_of(lines: list[str], word: str) -> int:
    """The number of the first assertion's line that says a word."""
    return next(at for at, line in enumerate(lines, 1) if '"kind":"assertion"' in line and word in line)


async def test_nobody_sees_an_import_before_it_is_published_and_then_everybody_sees_all(
    memory: Recollection, tmp_path: Path
) -> None:
    """Lists, recalls, histories, logs, exports, dry runs and the index are as if it had not begun."""
    await remembered(memory, draft("likes tea", origin=moment(1)))
    lines = await exported_elsewhere(
        tmp_path, city("Rome"), city("Paris", at=NOW), draft("likes cake", origin=moment(2))
    )
    before = await memory.export(scope=TENANT)

    async with standing_import(memory, lines, TENANT) as standing:
        await memory.index_pending()
        assert [each.text for _, each in await memory.list(scope=TENANT, which=Which.ALL)] == ["likes tea"]
        assert await texts(memory, "likes lives in") == ["likes tea"]
        (cake,) = ids_in(lines, "likes cake")
        with pytest.raises(UnknownAssertion):
            await memory.get(cake, scope=TENANT)
        assert await memory.timeline("user", "city", scope=TENANT) == []
        assert await memory.held_at("user", "city", scope=TENANT, valid_at=NOW) == []
        assert await memory.diff(NOW - timedelta(days=9), NOW, scope=TENANT) == ((await listed(memory)), [])
        assert await memory.recalls("imported-run", tenant_id="acme") == []
        dry = await memory.erase(Forget(subject="user"), tenant_id="acme", now=NOW, dry_run=True)
        assert dry.counts["assertions"] == 0
        assert (await memory.verify()).agrees
        exported_meanwhile = await memory.export(scope=TENANT)
        assert [line for line in exported_meanwhile if '"kind":"recall"' not in line] == before
        assert not any("imported-run" in line for line in exported_meanwhile)
        done = await standing.end()

    assert done.added["assertion"] == 4
    await memory.index_pending()
    assert (await memory.verify()).agrees
    assert set(await texts(memory, "likes lives in")) == {"likes tea", "likes cake", "lives in Paris"}
    assert len(await memory.recalls("imported-run", tenant_id="acme")) == 1
    assert [each.value for each in await memory.held_at("user", "city", scope=TENANT, valid_at=NOW)] == ["Paris"]
    assert {line for line in lines if line not in set(await memory.export(scope=TENANT))} == set()


async def test_neither_a_recall_without_an_index_nor_a_change_meets_what_is_staged(
    memory: Recollection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest rows answer while the index is down; of an id that nobody has seen nothing can be taken back."""
    lines = await exported_elsewhere(tmp_path, draft("likes cake"))
    await remembered(memory, draft("likes tea"))

    async def down(*_: Any) -> Any:
        raise IndexUnavailable("it is down")

    async with standing_import(memory, lines, TENANT) as standing:
        monkeypatch.setattr(memory._index, "near", down)
        answers = await memory.recall(question("likes"))
        assert [each.assertion.text for each in answers.answers] == ["likes tea"]
        assert answers.withheld == {}
        (cake,) = ids_in(lines, "likes cake")
        for change in (memory.undo, memory.approve, partial(memory.retract, reason="no")):
            with pytest.raises(UnknownAssertion):
                await change(cake, scope=TENANT, change=CHANGE)
        await standing.end()

    assert set(await texts(memory, "likes")) == {"likes tea", "likes cake"}


async def listed(memory: Recollection) -> list[Any]:
    """What is believed now."""
    return [each for _, each in await memory.list(scope=TENANT)]


async def test_others_write_between_the_parts_of_an_import(
    memory: Recollection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that comes while lines are staged is done before the import is."""
    lines = await exported_elsewhere(tmp_path, *(draft(f"likes cake {number}") for number in range(8)))
    order: list[str] = []
    stage, begin = staging.stage, staging.begin

    def staging_(*given: Any, **named: Any) -> Any:
        order.append("part")
        return stage(*given, **named)

    monkeypatch.setattr(importer, "stage", staging_)
    written: list[asyncio.Task[Any]] = []
    loop = asyncio.get_running_loop()

    async def write() -> None:
        await memory.remember([draft("likes tea")], scope=HOME, now=NOW)
        order.append("write")

    def beginning(*given: Any, **named: Any) -> Any:
        loop.call_soon_threadsafe(lambda: written.append(loop.create_task(write())))
        return begin(*given, **named)

    monkeypatch.setattr(importer, "begin", beginning)
    await memory.import_(lines, scope=TENANT)
    await asyncio.gather(*written)

    assert order.index("write") < len(order) - 1 - order[::-1].index("part")
    assert len(await memory.list(scope=TENANT)) == 9


@pytest.mark.parametrize(
    ("imported", "written"),
    [(draft("likes tea"), draft("likes tea")), (city("Rome"), city("Paris", at=NOW))],
    ids=["the same statement", "another value of a single-valued attribute"],
)
async def test_a_write_beside_an_import_comes_first_and_the_import_is_refused_with_its_line(
    memory: Recollection, tmp_path: Path, imported: Any, written: Any
) -> None:
    """It is remembered as if there were no import; of the import nothing is kept, as if it had come afterwards."""
    lines = await exported_elsewhere(tmp_path, draft("likes cake"), imported)

    async with standing_import(memory, lines, TENANT) as standing:
        (verdict,) = await remembered(memory, written)
        counts = await row_counts(memory)
        assert verdict.disposition == "added"
        with pytest.raises(Refused) as refused:
            await standing.end()

    assert refused.value.path == f"line {number_of(lines, imported.text)}"
    assert [each.assertion_id for each in await listed(memory)] == [verdict.assertion_id]
    left = await row_counts(memory)
    assert {name: left[name] for name in ("memory_assertion", "memory_evidence")} == dict.fromkeys(
        ("memory_assertion", "memory_evidence"), 1
    )
    assert left.keys() - {"memory_attribute"} == {"memory_assertion", "memory_evidence"}
    assert counts["memory_import_line"] > 0
    async with standing_import(memory, lines, TENANT) as again:
        with pytest.raises(Refused, match=verdict.assertion_id):
            await again.end()


async def test_a_moment_remembered_during_an_import_is_kept(memory: Recollection, tmp_path: Path) -> None:
    """The staged copy of the moment is a further source of its own statement, as if it had come afterwards."""
    lines = await exported_elsewhere(tmp_path, city("Rome", origin=moment(1)), city("Paris", origin=moment(2), at=NOW))
    closed = [line for line in lines if '"lives in Paris"' not in line and '"known_to":4611686018427387904' not in line]

    async with standing_import(memory, closed, TENANT) as standing:
        (verdict,) = await remembered(memory, city("Rome", origin=moment(1)))
        assert verdict.disposition == "added"
        await standing.end()

    (again,) = await remembered(memory, city("Rome", origin=moment(1)))
    assert (again.disposition, again.assertion_id) == ("duplicate", verdict.assertion_id)
    (rome,) = ids_in(closed, "Rome")
    assert len((await memory.get(rome, scope=TENANT)).provenance) == 1


@pytest.mark.parametrize(
    "what",
    [
        Forget(subject="Ann"),
        Forget(source=Selector(thread_ref="anns-thread")),
        Forget(namespace=("users", "ann")),
        Forget(tenant=True),
    ],
    ids=["subject", "source", "namespace", "tenant"],
)
async def test_what_is_erased_during_an_import_is_not_brought_back(
    memory: Recollection, tmp_path: Path, what: Forget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An erasure that ended before a line was staged reaches it, and counts it; its words are nowhere."""
    origin = moment(1, thread="anns-thread", actor="Ann")
    anns = draft("word-ann lives here", scope=ANNS, subject="Ann", attribute="home", value="here", origin=origin)
    lines = await exported_elsewhere(tmp_path, anns, draft("likes cake"))
    staged, may_stage = asyncio.Event(), asyncio.Event()
    staged_ = memory._importer._staged

    async def late(*given: Any) -> Any:
        staged.set()
        await may_stage.wait()
        return await staged_(*given)

    memory._importer._staged = late  # type: ignore[method-assign, assignment]
    task = asyncio.create_task(memory.import_(lines, scope=TENANT))
    await staged.wait()
    erasure = await memory.erase(what, tenant_id="acme", now=NOW)
    assert (erasure.is_done, erasure.counts["assertions"]) == (True, 0)
    may_stage.set()
    await task

    after = await memory.erasure(erasure.erasure_id, tenant_id="acme")
    assert after.counts["assertions"] == (2 if what.tenant else 1)
    assert [each.text for each in await listed(memory)] == ([] if what.tenant else ["likes cake"])
    assert not any("word-ann" in line or "Ann" in line for line in await memory.export(scope=TENANT))
    again = await memory.import_(lines, scope=TENANT)
    assert again.erased > 0
    assert "memory_import_line" not in await row_counts(memory)


async def test_an_attribute_that_was_declared_otherwise_meanwhile_refuses_the_import(
    memory: Recollection, tmp_path: Path
) -> None:
    """The refusal names the line of the declaration."""
    lines = await exported_elsewhere(tmp_path, city("Rome"))

    async with standing_import(memory, lines, TENANT) as standing:
        await remembered(memory, city("Oslo", cardinality=Cardinality.MANY))
        with pytest.raises(Refused, match="declared here as 'many'") as refused:
            await standing.end()

    assert refused.value.path == "line 2.cardinality"
    assert [each.value for each in await listed(memory)] == ["Oslo"]


async def test_a_version_that_was_true_at_the_same_time_as_a_held_one_is_refused(
    memory: Recollection, tmp_path: Path
) -> None:
    """Of a single-valued attribute no two versions are believed for one instant, also where one of them has an end."""
    year = timedelta(days=365)
    lines = await exported_elsewhere(tmp_path, city("Rome", valid_from=NOW - 2 * year, valid_to=NOW - year))
    (held,) = await remembered(memory, city("Oslo", valid_from=NOW - 3 * year))

    with pytest.raises(Refused, match=held.assertion_id) as refused:
        await memory.import_(lines, scope=TENANT)

    assert refused.value.path == f"line {number_of(lines, 'Rome')}"
