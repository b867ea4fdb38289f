"""Agents that compact by a policy which each tenant keeps by name."""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from msgspec import structs

from tests.conformance.store import Store
from tests.integration.state.stage import Stage, open_stage
from tests.support.factories import TENANT, Reply
from threadmark.compaction import CompactionService, CompactionStatus, Policy, migrate
from threadmark.state import open_engine
from threadmark.state.tasks.task_claims import HeldTask
from threadmark.state.tasks.tasks import Task, list_tasks
from threadmark.workers.agents.compaction_policy import CompactionPolicy
from threadmark.workers.agents.tools import NonRetryable
from threadmark.workers.tasks.compaction_triggers import COMPACT_IF_DUE, compact_if_due
from threadmark.workers.tasks.task_context import TaskContext

LONG = "Here is what I found about the matter, and it is of no great use. " * 12
KEPT = Policy(keep_last_turns=1, min_gain=0.0, summary_tokens=120)


@pytest.fixture
async def stage(store: Store, url: str, tmp_path: Path) -> AsyncIterator[Stage]:
    """An agent whose threads are compacted above 600 tokens, and after two turns, by the policy `tight`."""
    engine = open_engine(url, write=True)
    migrate(engine)
    engine.dispose()
    async with open_stage(store, tmp_path, [Reply(LONG)] * 50) as opened:
        named = CompactionPolicy(request_tokens_max=600, turns=2, policy="tight")
        opened.agent = replace(opened.agent, compaction=named)
        compaction = CompactionService(store.database, now=opened.clock.now)
        opened.parts = replace(opened.parts, compactor=opened.compactor(compaction))
        yield opened


def service(stage: Stage) -> CompactionService:
    """What the desk has."""
    assert stage.parts.compactor is not None
    return stage.parts.compactor.service


async def talk(stage: Stage, count: int) -> None:
    """So many runs on one thread, each to a good end."""
    await stage.store.thread("long")
    for number in range(count):
        run = await stage.play_out(await stage.say(f"Never pay more than ${number}00.", thread_id="long"))
        assert run.status == "success"


async def test_an_agent_compacts_by_what_the_name_stands_for_now(stage: Stage) -> None:
    """Each compaction says which version it was; a new one counts from the next compaction on."""
    await service(stage).policies.put(TENANT, "tight", KEPT)
    await talk(stage, 5)
    first = await service(stage).compactions.of_thread(TENANT, "long")
    await service(stage).policies.put(TENANT, "tight", structs.replace(KEPT, summary_tokens=100))
    await talk(stage, 5)
    done = await service(stage).compactions.of_thread(TENANT, "long")

    assert {(each.policy.name, each.policy.version, each.policy.target_tokens) for each in first} == {("tight", 1, 450)}
    assert {each.policy.version for each in done} == {1, 2}
    assert CompactionStatus.COMMITTED in {each.status for each in done}


async def test_a_name_of_nothing_stops_no_run_and_says_so(stage: Stage) -> None:
    """One aborted compaction for each run that was too large; the model is sent all that there is."""
    await talk(stage, 5)
    done = await service(stage).compactions.of_thread(TENANT, "long")

    assert {(each.status, each.error_code) for each in done} == {(CompactionStatus.ABORTED, "policy_unknown")}
    assert "'tight'" in str(done[0].error)
    assert "<compacted" not in str(stage.model.requests[-1].messages)


async def test_a_background_compaction_by_a_name_of_nothing_fails(stage: Stage) -> None:
    """Its task fails at once, with the agent and the name: tried again it would fail again."""
    await talk(stage, 2)
    tasks: list[Task] = await stage.store.read(partial(list_tasks, tenant_id=TENANT, kind=COMPACT_IF_DUE, count_max=9))
    held = HeldTask(number=tasks[0].number, task_id=tasks[0].task_id, fence=1)

    assert stage.parts.compactor is not None
    with pytest.raises(NonRetryable, match="'tight'"):
        await compact_if_due(
            tasks[0],
            TaskContext(stage.store.database, held),
            database=stage.store.database,
            registry=stage.registry,
            compactor=stage.parts.compactor,
            on_ordered=stage.parts.task_signal.set,
        )


def test_a_name_that_no_policy_can_have_is_refused_with_the_agent() -> None:
    """Nobody has to wait for the first compaction to hear of it."""
    with pytest.raises(ValueError, match="no policy is kept by such a name"):
        CompactionPolicy(policy="not a name")
