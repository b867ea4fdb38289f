"""The task that a run of a compacting agent leaves: its thread's messages are analysed, once for all that wait."""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from tests.conformance.store import Store
from tests.integration.state.stage import Stage, open_stage
from tests.support.factories import TENANT, Reply
from threadmark.compaction import CompactionService, migrate
from threadmark.state import open_engine
from threadmark.state.tasks.tasks import Task, list_tasks
from threadmark.workers.agents.compaction_policy import CompactionPolicy
from threadmark.workers.tasks.task_context import TaskContext
from threadmark.workers.tasks.thread_analysis import ANALYSE_THREAD, analyse_thread


@pytest.fixture
async def stage(store: Store, url: str, tmp_path: Path) -> AsyncIterator[Stage]:
    """An agent whose threads would be compacted if they were long."""
    engine = open_engine(url, write=True)
    migrate(engine)
    engine.dispose()
    async with open_stage(store, tmp_path, [Reply("Noted: $47,500.")] * 9) as opened:
        compaction = CompactionService(store.database, now=opened.clock.now)
        opened.agent = replace(opened.agent, compaction=CompactionPolicy())
        opened.parts = replace(opened.parts, compactor=opened.compactor(compaction))
        yield opened


async def say(stage: Stage) -> None:
    """One run, to its end."""
    await stage.store.thread("long")
    await stage.play_out(await stage.say("Never pay more than $47,500 for OPS-12.", thread_id="long"))


async def waiting(stage: Stage) -> list[Task]:
    """The tasks of this kind, the oldest first."""
    tasks = await stage.store.read(partial(list_tasks, count_max=99))
    return sorted((each for each in tasks if each.kind == ANALYSE_THREAD), key=lambda task: task.number)


async def perform(stage: Stage, task: Task) -> dict[str, Any]:
    """What the handler comes to."""
    assert stage.parts.compactor is not None
    return await analyse_thread(
        task,
        cast(TaskContext, None),
        database=stage.parts.database,
        journal=stage.parts.journal,
        registry=stage.registry,
        compaction=stage.parts.compactor.service,
    )


async def test_a_run_leaves_the_analysis_of_its_thread(stage: Stage) -> None:
    """The task names the thread and no words; done twice, everything is known."""
    await say(stage)
    (task,) = await waiting(stage)

    assert set(task.payload) == {"thread_id", "run_id", "assistant"}
    first, second = await perform(stage, task), await perform(stage, task)

    assert (first["analysed"], first["known"], first["total"]) == (2, 0, 2)
    assert (second["analysed"], second["known"]) == (0, 2)


async def test_of_several_runs_the_last_one_does_the_work(stage: Stage) -> None:
    """Three tasks that waited: two have nothing to do, the third one analyses what all runs said, new words alone."""
    for _ in range(3):
        await say(stage)
    first, second, third = [await perform(stage, task) for task in await waiting(stage)]

    assert "skipped" in first
    assert "skipped" in second
    # Three times the same words are three messages and one analysis of each.
    assert (third["analysed"], third["total"]) == (2, 2)


async def test_an_agent_that_does_not_compact_leaves_none(stage: Stage) -> None:
    """Its threads are analysed when somebody compacts them; a task of an agent that gave up its policy is skipped."""
    await say(stage)
    (task,) = await waiting(stage)
    stage.agent = replace(stage.agent, compaction=None)

    await say(stage)

    assert await waiting(stage) == [task]
    assert "skipped" in await perform(stage, task)


async def test_a_thread_that_was_deleted_is_no_failure(stage: Stage) -> None:
    """Its task has nothing to do, for ever."""
    await say(stage)
    (task,) = await waiting(stage)

    gone = replace(task, payload={**task.payload, "thread_id": "gone"})

    assert await perform(stage, gone) == {"skipped": "the thread is gone"}
    assert task.tenant_id == TENANT
