"""Memory in a process: there when it can be, missed by nobody when it cannot."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.api import Hands
from tests.support.waiting import wait_until
from threadmark.app.schema import migrate_all, migrate_for_start
from threadmark.memory import Draft, Forget, Question, Recollection, Scope, Unavailable, Which, migrate
from threadmark.workers import memory_resources
from threadmark.workers.memory_resources import MemorySide, new_recollection, open_memory
from threadmark.workers.migration import migrate_memory
from threadmark.workers.settings.settings import Settings
from threadmark.workers.wiring import open_resources

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
SCOPE = Scope(tenant_id="acme", namespace=("users", "7"))


def now() -> datetime:
    """A clock that stands still."""
    return NOW


@pytest.fixture(autouse=True)
def quick_upkeep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of upkeep follow each other at once."""
    monkeypatch.setattr(memory_resources, "KEEP_S", 0.02)


def settings_of(folder: Path, **more: str) -> Settings:
    """The settings of a process in `folder`."""
    return Settings.from_environment({"THREADMARK_DATA_DIR": str(folder), **more})


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[MemorySide]:
    """Memory of one process, its database made."""
    settings.data_dir.mkdir(exist_ok=True)
    migrate_memory(settings)
    async with open_memory(settings, now) as side:
        yield side


async def tell(recollection: Recollection, text: str) -> None:
    """Remember a sentence."""
    draft = Draft(namespace=SCOPE.namespace, text=text, observed_at=NOW)
    await recollection.remember([draft], scope=SCOPE, now=NOW)


async def recall(recollection: Recollection, text: str) -> tuple[list[str], bool]:
    """The texts that a question finds, and whether the index answered."""
    answers = await recollection.recall(Question(text=text, scope=SCOPE, asked_at=NOW))
    return [each.assertion.text for each in answers.answers], answers.index_answered


@pytest.mark.parametrize("index", ["embedded", "memory"])
async def test_what_was_remembered_before_a_restart_is_recalled_after_it(tmp_path: Path, index: str) -> None:
    """The embedded index is loaded, the one in memory is built anew from the database."""
    settings = settings_of(tmp_path, THREADMARK_MEMORY_INDEX=index)
    async with opened(settings) as side:
        await tell(side.recollection, "Ada drinks green tea")

    async with opened(settings) as side:
        assert await recall(side.recollection, "What tea does Ada drink?") == (["Ada drinks green tea"], True)


async def test_the_supervisor_keeps_everything_that_memory_does_in_the_background(tmp_path: Path) -> None:
    """An error in any of it is counted where an operator looks."""
    async with opened(settings_of(tmp_path)) as side:
        names = {report.name for report in side._supervisor.reports()}

    assert names == {"memory upkeep", "memory index", "memory recall log"}


@pytest.mark.parametrize("index", ["embedded", "memory"])
async def test_one_process_owns_the_index_and_the_next_takes_over(tmp_path: Path, index: str) -> None:
    """The second answers from the database, never opens the index, and owns it when the first is gone."""
    settings = settings_of(tmp_path, THREADMARK_MEMORY_INDEX=index)
    async with AsyncExitStack() as stack:
        leaving = AsyncExitStack()
        owner = await leaving.enter_async_context(opened(settings))
        assert owner.is_indexing
        other = await stack.enter_async_context(open_memory(settings, now))
        await tell(other.recollection, "Ada drinks green tea")
        assert not other.is_indexing
        assert await recall(other.recollection, "tea") == (["Ada drinks green tea"], False)
        await wait_until(lambda: _indexed(owner), description="the owner indexes what others wrote")
        await leaving.aclose()

        await wait_until(lambda: other.is_indexing, description="the other process owns the index")
        assert await recall(other.recollection, "tea") == (["Ada drinks green tea"], True)


async def _indexed(side: MemorySide) -> bool:
    return (await side.recollection.verify()).agrees


async def test_an_erasure_by_a_process_without_the_index_is_finished_by_its_owner(tmp_path: Path) -> None:
    """The database is erased at once; the index follows when its owner sees the job."""
    settings = settings_of(tmp_path)
    async with opened(settings) as owner, open_memory(settings, now) as other:
        await tell(owner.recollection, "Ada drinks green tea")
        await owner.recollection.index_pending()

        begun = await other.recollection.erase(Forget(tenant=True), tenant_id="acme", now=NOW)

        async def is_done() -> bool:
            return (await other.recollection.erasure(begun.erasure_id, tenant_id="acme")).is_done

        await wait_until(is_done, description="the owner finishes the erasure")
        assert (await owner.recollection.verify()).agrees


async def test_processes_on_other_machines_share_a_database_and_not_an_index(tmp_path: Path, postgres_url: str) -> None:
    """One session of the database owns the index; the next owner makes it agree with the database first."""
    first = settings_of(tmp_path / "first", THREADMARK_MEMORY_DATABASE_URL=postgres_url)
    second = settings_of(tmp_path / "second", THREADMARK_MEMORY_DATABASE_URL=postgres_url)
    async with AsyncExitStack() as stack:
        leaving = AsyncExitStack()
        owner = await leaving.enter_async_context(opened(first))
        await tell(owner.recollection, "Ada drinks green tea")
        await owner.recollection.index_pending()
        second.data_dir.mkdir()
        other = await stack.enter_async_context(open_memory(second, now))
        assert not other.is_indexing
        await leaving.aclose()

        await wait_until(lambda: other.is_indexing, description="the other machine owns the index")
        await other.recollection.index_pending()
        assert (await other.recollection.verify()).agrees
        assert await recall(other.recollection, "tea") == (["Ada drinks green tea"], True)


async def test_a_process_serves_without_memory_and_gets_it_when_the_schema_comes(tmp_path: Path) -> None:
    """Nothing waits: questions before are refused as memory is unavailable, questions after are answered."""
    settings = settings_of(tmp_path)
    migrate_for_start(settings)
    migrate(settings.memory_database_url, "base")
    async with open_resources(settings, with_worker=False, now=now) as resources:
        with pytest.raises(Unavailable):
            await tell(resources.recollection, "too early")

        migrate(settings.memory_database_url)

        await wait_until(lambda: resources.memory.is_indexing, description="memory is up")
        await tell(resources.recollection, "Ada drinks green tea")
        assert (await recall(resources.recollection, "tea"))[0] == ["Ada drinks green tea"]


async def test_a_memory_that_cannot_be_opened_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A folder where the database file should be: the start says so once and goes on."""
    (tmp_path / "memory.db").mkdir()
    settings = settings_of(tmp_path)

    migrate_for_start(settings)
    async with open_resources(settings, with_worker=False, now=now) as resources:
        with pytest.raises(Unavailable):
            await tell(resources.recollection, "nowhere")

    assert "memory is not migrated, and not there until it is: unable to open database file" in caplog.text


async def test_a_lock_that_cannot_be_made_costs_the_index_alone(tmp_path: Path) -> None:
    """The claim is a file beside the database; a folder in its place is nobody's."""
    settings = settings_of(tmp_path)
    (tmp_path / "memory.db.index-owner").mkdir()
    async with opened(settings) as side:
        await tell(side.recollection, "Ada drinks green tea")

        assert await recall(side.recollection, "tea") == (["Ada drinks green tea"], False)


async def test_nothing_is_loaded_before_it_is_used(tmp_path: Path) -> None:
    """An embedder that is not installed costs its signal: writes and lexical answers go on."""
    settings = settings_of(
        tmp_path, THREADMARK_EMBEDDER="openai:nothing:8", THREADMARK_EMBEDDER_URL="http://127.0.0.1:9"
    )
    migrate_all(settings)
    recollection, _ = new_recollection(settings, now)
    await tell(recollection, "Ada drinks green tea")
    assert (await recall(recollection, "tea"))[0] == ["Ada drinks green tea"]
    await recollection.close()


async def test_what_expires_is_swept_while_the_process_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S41: nobody has to ask for it, or to start anything anew; what has time left stays."""
    monkeypatch.setattr(memory_resources, "SWEEP_EVERY_S", 0.0)
    settings, hands = settings_of(tmp_path), Hands(began_at=NOW)
    migrate_memory(settings)
    async with open_memory(settings, hands.now) as side:
        drafts = [
            Draft(
                namespace=SCOPE.namespace,
                text=f"for {hours} hours",
                observed_at=NOW,
                expires_at=NOW + timedelta(hours=hours),
            )
            for hours in (1, 3)
        ]
        await side.recollection.remember(drafts, scope=SCOPE, now=NOW)
        hands.pass_s(2 * 60 * 60)

        async def is_swept() -> bool:
            held = await side.recollection.list(scope=SCOPE, which=Which.ALL)
            return [each.text for _, each in held] == ["for 3 hours"]

        await wait_until(is_swept, description="the expired memory to be swept")
