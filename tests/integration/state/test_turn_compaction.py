"""Turns on long threads: what the model is shown, when it is compacted, and that the prefix stays what it was."""

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.conformance.store import Store
from tests.integration.state.stage import Stage, open_stage
from tests.support.factories import TENANT, Reply, human
from threadmark.compaction import CompactionService, CompactionStatus, Order, Policy, SummariserKind, Trigger, migrate
from threadmark.state import ModelReplied, Run, StateUpdated, Update, ViewChanged, open_engine, update_state
from threadmark.workers.agents.compaction_policy import CompactionPolicy

LONG = "Here is what I found about the matter, and it is of no great use. " * 12
KEPT = Policy(keep_last_turns=1, min_gain=0.0, summary_tokens=120)
POLICY = CompactionPolicy(request_tokens_max=1_200, policy=KEPT)


@pytest.fixture
async def stage(store: Store, url: str, tmp_path: Path) -> AsyncIterator[Stage]:
    """An agent whose threads are compacted above 1,200 tokens; it answers everything at length."""
    engine = open_engine(url, write=True)
    migrate(engine)
    engine.dispose()
    async with open_stage(store, tmp_path, [Reply(LONG)]) as opened:
        opened.model.replies = [Reply(LONG)] * 100
        compaction = CompactionService(store.database, now=opened.clock.now)
        opened.agent = replace(opened.agent, compaction=POLICY)
        opened.parts = replace(opened.parts, compactor=opened.compactor(compaction))
        yield opened


def service(stage: Stage) -> CompactionService:
    """What the desk has."""
    assert stage.parts.compactor is not None
    return stage.parts.compactor.service


async def talk(stage: Stage, count: int, thread_id: str = "long") -> list[Run]:
    """So many runs on one thread, each to its end."""
    await stage.store.thread(thread_id)
    runs = []
    for number in range(count):
        run = await stage.say(f"Never pay more than ${number}00 for OPS-{number}.", thread_id=thread_id)
        runs.append(await stage.play_out(run))
    return runs


async def test_a_request_that_would_be_too_large_is_compacted_first(stage: Stage) -> None:
    """Inside of the run, before the model's call: no request is larger than the policy allows."""
    runs = await talk(stage, 12)

    assert {run.status for run in runs} == {"success"}
    done = await service(stage).compactions.of_thread(TENANT, "long", count_max=100)
    assert {each.status for each in done} <= {CompactionStatus.COMMITTED, CompactionStatus.SUPERSEDED}
    assert {each.trigger for each in done} == {Trigger.TOKENS}
    assert 0 < len(done) < len(runs)
    for request in stage.model.requests:
        count = sum(map(service(stage).compactions.count_message, request.messages))
        assert count <= POLICY.request_tokens_max
    last = "\n".join(str(message.content) for message in stage.model.requests[-1].messages)
    assert all(f"Never pay more than ${number}00 for OPS-{number}." in last for number in range(12))


async def test_a_reply_says_which_view_the_model_was_shown(stage: Stage) -> None:
    """None while the transcript was shown as it is; then the view's id, version and hash."""
    runs = await talk(stage, 8)

    replies = await stage.entries_of(runs[-1], ModelReplied)
    shown = await service(stage).views.show(TENANT, "long")

    assert replies[0].view is None
    assert replies[-1].view is not None
    assert (replies[-1].view.view_id, replies[-1].view.version) == (
        shown.kept.view.view_id,
        shown.kept.view.version,
    )


async def test_the_prefix_is_the_same_between_compactions(stage: Stage) -> None:
    """What one request showed is, message for message, the beginning of the next one, unless a compaction came."""
    runs = await talk(stage, 12)

    replies = await stage.entries_of(runs[-1], ModelReplied)
    pairs = list(zip(stage.model.requests, replies, strict=True))
    compared = 0
    for (before, reply), (after, next_reply) in pairwise(pairs):
        if (reply.view and reply.view.view_id) == (next_reply.view and next_reply.view.view_id):
            shown = [(each.type, each.content, each.tool_calls) for each in before.messages]
            assert [(each.type, each.content, each.tool_calls) for each in after.messages][: len(shown)] == shown
            compared += 1
    assert compared > len(pairs) // 2


async def test_a_floor_that_is_too_large_makes_no_loop(stage: Stage) -> None:
    """One message larger than the bound: the run goes on, and at most two attempts in a row are in vain."""
    runs = await talk(stage, 2)
    big = await stage.play_out(await stage.say("Read this: " + LONG * 10, thread_id="long"))
    for _ in range(4):
        big = await stage.play_out(await stage.say("And this: " + LONG * 10, thread_id="long"))

    assert (runs[0].status, big.status) == ("success", "success")
    assert len(stage.model.requests) == len(await stage.entries_of(big, ModelReplied))


async def test_an_agent_without_a_policy_sees_what_was_compacted_on_demand(stage: Stage) -> None:
    """The view belongs to the thread, not to its maker."""
    stage.agent = replace(stage.agent, compaction=None)
    await talk(stage, 8)
    assert all("<compacted" not in str(request.messages) for request in stage.model.requests)
    order = await service(stage).compactions.begin(TENANT, "long", _order())
    done = await service(stage).compactions.perform(order[0].compaction_id, holder="a person")
    assert done.status is CompactionStatus.COMMITTED

    await talk(stage, 1)

    assert "<compacted" in str(stage.model.requests[-1].messages)


async def test_a_model_that_fails_to_summarise_stops_no_run(stage: Stage) -> None:
    """It answers the conversation instead of condensing it; the summary is made of excerpts, in the same run."""
    policy = replace(POLICY, summariser=SummariserKind.MODEL)
    stage.agent = replace(stage.agent, compaction=policy)
    runs = await talk(stage, 8)

    done = await service(stage).compactions.of_thread(TENANT, "long")

    assert {run.status for run in runs} == {"success"}
    assert {each.strategy for each in done} == {"extractive"}
    assert all(each.rejections for each in done)


def _order() -> Order:
    return Order(key="on demand", policy=KEPT)


async def test_the_journal_says_what_a_run_compacted(stage: Stage) -> None:
    """Before the reply that the new view was shown for; the reply names the view that the last entry named."""
    runs = await talk(stage, 12)
    entries = [each.entry for each in await stage.store.entries(runs[-1].thread)]
    done = await service(stage).compactions.of_thread(TENANT, "long", count_max=100)

    changes = [each for each in entries if isinstance(each, ViewChanged)]
    in_order = sorted(done, key=lambda each: each.ordinal)
    assert [(each.act, each.compaction_id, each.covers) for each in changes] == [
        ("compacted", each.compaction_id, each.covers) for each in in_order
    ]
    view_id: str | None = None
    for each in entries:
        if isinstance(each, ViewChanged):
            view_id = each.view_id
        elif isinstance(each, ModelReplied):
            assert (each.view and each.view.view_id) == view_id


async def test_a_view_that_moved_while_the_run_waited_is_journaled_by_its_holder(stage: Stage) -> None:
    """Also after a worker that compacted in the run died before it journaled that: the view itself is folded in."""
    await talk(stage, 3)
    waiting = await stage.say("And now?", thread_id="long")
    order, _ = await service(stage).compactions.begin(TENANT, "long", _order())
    done = await service(stage).compactions.perform(order.compaction_id, holder="a person")
    assert not any(isinstance(each.entry, ViewChanged) for each in await stage.store.entries(waiting.thread))

    run = await stage.play_out(waiting)

    (change,) = await stage.entries_of(run, ViewChanged)
    (reply,) = (await stage.entries_of(run, ModelReplied))[-1:]
    assert (change.view_id, change.compaction_id) == (done.view_id, done.compaction_id)
    assert reply.view is not None
    assert reply.view.view_id == change.view_id


async def test_a_view_that_fits_no_longer_is_journaled_as_fallen_back(stage: Stage) -> None:
    """A summary of edited words no longer covers the transcript: the view before it is used, and journaled."""
    runs = await talk(stage, 8)
    said = [each for each in (await stage.state(runs[-1])).messages if "OPS-1" in str(each.content)]
    thread = await stage.store.thread("long")
    entry = StateUpdated(messages=(human("Pay what they want.", said[0].id),))
    change = Update(thread=thread, entry=entry, expected_seq=thread.head_seq)
    await stage.store.write(lambda connection: update_state(connection, change, stage.store.now_us()))
    stage.agent = replace(stage.agent, compaction=None)

    run = (await talk(stage, 1))[-1]

    fallen = [each for each in await stage.entries_of(run, ViewChanged) if each.act == "fell_back"]
    shown = await service(stage).views.show(TENANT, "long")
    assert [each.view_id for each in fallen] == [shown.kept.view.view_id]
