"""Recall inside a run: asked once, journaled, shown to the model as data, and never in a run's way."""

import asyncio
import contextlib
import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.store import Store
from tests.integration.state.mortality import Death, Fate, mortal
from tests.integration.state.remembering import Counted, remembering
from tests.integration.state.stage import Stage
from tests.support.factories import TENANT, Reply
from tests.support.memory_injections import INJECTIONS
from threadmark.memory import NOTICE, Draft, Origin, Question, Scope, Trust, Unavailable
from threadmark.state import ModelReplied, Recalled, RunSettled, RunStatus, kind_of
from threadmark.workers.agents.memory_policy import MemoryPolicy
from threadmark.workers.agents.tools import Effect, tool

HOME = Scope(tenant_id=TENANT, namespace=("assistants", "chat"))
DOG = "The dog is called Rex."


@tool(effect=Effect.PURE)
async def look() -> str:
    """Look."""
    return "seen"


async def hold(stage: Stage, counted: Counted, *texts: str, scope: Scope = HOME, **fields: Any) -> list[str]:
    """Store texts in memory; their ids."""
    at: datetime = stage.clock.now() - timedelta(days=1)
    drafts = [
        Draft(
            namespace=scope.namespace,
            text=text,
            observed_at=at,
            **{"origin": Origin(thread_ref="earlier", run_ref="run", seq=3, message_ref=f"m{number}"), **fields},
        )
        for number, text in enumerate(texts)
    ]
    return [each.assertion_id for each in await counted.memory.remember(drafts, scope=scope, now=at)]


async def test_what_memory_knows_reaches_the_model_and_the_journal(store: Store, tmp_path: Path) -> None:
    """The answer is an entry before the reply; the model sees it as data beside the question, under an id."""
    async with remembering(store, tmp_path, [Reply("Rex.")]) as (stage, counted):
        (memory_id,) = await hold(stage, counted, DOG)
        run = await stage.play_out(await stage.say("What is the dog called?"))

        kinds = [kind_of(each.entry) for each in await stage.entries(run)]
        assert kinds == ["run_started", "turn_started", "recalled", "model_replied", "run_settled"]
        (recalled,) = await stage.entries_of(run, Recalled)
        (answer,) = recalled.answers
        assert (recalled.status, recalled.step_key, answer["memory_id"], answer["text"]) == (
            "ok",
            "recall-1",
            memory_id,
            DOG,
        )
        assert answer["because"]
        assert answer["provenance"][0] | {"thread_ref": "earlier", "seq": 3} == answer["provenance"][0]
        (request,) = stage.model.requests
        assert memory_id in request.recalled
        assert [message.content for message in request.messages] == ["What is the dog called?"]
        assert [message.type for message in await stage.messages(run)] == ["human", "ai"]


async def test_a_message_is_asked_about_once_however_long_the_run(store: Store, tmp_path: Path) -> None:
    """Tool loops and later turns ask nothing; the next message does."""
    replies = [Reply("", [("look", {})]), Reply("", [("look", {})]), Reply("Done."), Reply("Again.")]
    async with remembering(store, tmp_path, replies, [look]) as (stage, counted):
        await hold(stage, counted, DOG)
        run = await stage.play_out(await stage.say("the dog"))
        assert len(counted.asked) == 1
        assert len({request.recalled for request in stage.model.requests}) == 1

        await stage.play_out(await stage.say("the dog again", thread_id=run.thread_id))

        assert [question.text for question in counted.asked] == ["the dog", "the dog again"]


def a_folder(parent: Path, name: str) -> Path:
    """An empty data directory."""
    (parent / name).mkdir()
    return parent / name


async def dying_at(store: Store, folder: Path, at: int) -> bool:
    """Play a run whose worker dies at point `at` and that another one finishes; whether the run ended before that."""
    replies = [Reply("", [("look", {})]), Reply("Done.")]
    async with remembering(store, folder, replies, [look]) as (stage, counted):
        await hold(stage, counted, DOG)
        run, fate = await stage.say("the dog"), Fate(at=at)
        dying = mortal(stage, fate, [look])
        with contextlib.suppress(Death):
            await dying.play()
        was_alive, fate.at, fate.is_dead = not fate.is_dead, None, False
        asked, was_recorded = len(counted.asked), bool(await stage.entries_of(run, Recalled))
        ended = await dying.play_out(run)

        assert ended.status is RunStatus.SUCCESS
        assert len(counted.asked) == (asked if was_recorded else asked + 1)
        assert len(await stage.entries_of(run, Recalled)) == 1
        return was_alive


async def test_whatever_is_recorded_is_not_asked_again_wherever_the_worker_dies(store: Store, tmp_path: Path) -> None:
    """Before and after each read, write, model call and tool call of a run."""
    deaths = 0
    while not await dying_at(store, a_folder(tmp_path, str(deaths)), deaths + 1):
        deaths += 1

    assert deaths > 10


async def test_a_memory_that_is_down_is_journaled_and_the_run_goes_on(store: Store, tmp_path: Path) -> None:
    """Recall is no durability mechanism: F21."""
    async with remembering(store, tmp_path, [Reply("Hello.")]) as (stage, counted):

        async def down(_question: Question) -> Any:
            raise Unavailable("the memory database is gone")

        counted.memory.recall = down  # type: ignore[method-assign, assignment]
        run = await stage.play_out(await stage.say("hello"))

        (recalled,) = await stage.entries_of(run, Recalled)
        assert (recalled.status, recalled.failure.error, recalled.block) == ("unavailable", "Unavailable", "")
        assert run.status is RunStatus.SUCCESS
        assert stage.model.requests[0].recalled == ""


async def test_a_memory_that_is_slow_is_waited_for_no_longer_than_the_policy_says(store: Store, tmp_path: Path) -> None:
    """A memory that never answers costs a run its time limit and nothing else: F21."""
    async with remembering(store, tmp_path, [Reply("Hello.")], policy=MemoryPolicy(timeout_s=0.05)) as (stage, counted):

        async def never(_question: Question) -> Any:
            await asyncio.Event().wait()

        counted.memory.recall = never  # type: ignore[method-assign, assignment]
        run = await stage.play_out(await stage.say("hello"))

        (recalled,) = await stage.entries_of(run, Recalled)
        assert (recalled.status, recalled.failure.error) == ("unavailable", "TimedOut")
        assert run.status is RunStatus.SUCCESS


async def test_a_server_without_a_memory_runs_its_agents_all_the_same(store: Store, tmp_path: Path) -> None:
    """What is absent is unavailable."""
    async with remembering(store, tmp_path, [Reply("Hello.")]) as (stage, _):
        stage.parts = replace(stage.parts, recollection=None)
        run = await stage.play_out(await stage.say("hello"))

        (recalled,) = await stage.entries_of(run, Recalled)
        assert recalled.failure.message == "this server has no memory"
        assert run.status is RunStatus.SUCCESS


async def test_a_stop_does_not_wait_for_memory(store: Store, tmp_path: Path) -> None:
    """A cancellation that comes while memory is asked ends the run; nothing was recalled and nobody was called."""
    async with remembering(store, tmp_path, [Reply("Hello.")], policy=MemoryPolicy(timeout_s=600)) as (stage, counted):
        run = await stage.say("hello")
        turn = await stage.turn()

        async def stopped(_question: Question) -> Any:
            await stage.cancel(run)
            turn.notice()
            await asyncio.Event().wait()

        counted.memory.recall = stopped  # type: ignore[method-assign, assignment]
        await turn.take()

        assert (await store.run(run)).status is RunStatus.INTERRUPTED
        assert [await stage.entries_of(run, kind) for kind in (Recalled, ModelReplied)] == [[], []]
        assert len(await stage.entries_of(run, RunSettled)) == 1


async def test_a_run_whose_time_is_up_is_not_recalled_for(store: Store, tmp_path: Path) -> None:
    """The wall time of a run counts what it waits for memory."""
    async with remembering(store, tmp_path, [Reply("Hello.")], policy=MemoryPolicy(timeout_s=600)) as (stage, counted):
        stage.agent = replace(stage.agent, limits=replace(stage.agent.limits, wall_time_s_max=0.05))
        run = await stage.say("hello")

        async def slow(_question: Question) -> Any:
            stage.clock.pass_s(1.0)
            await asyncio.Event().wait()

        counted.memory.recall = slow  # type: ignore[method-assign, assignment]
        await (await stage.turn()).take()

        assert (await store.run(run)).status is RunStatus.TIMEOUT
        assert await stage.entries_of(run, ModelReplied) == []


@pytest.mark.parametrize(("metadata"), [{}, {"user": 7}, {"user": ""}, {"user": "\x00"}], ids=str)
async def test_a_thread_that_names_no_user_has_no_memory_and_not_everybodys(
    store: Store, tmp_path: Path, metadata: dict[str, Any]
) -> None:
    """C10, C12, C60: a missing or odd label never widens a scope, and 7 is not "7"."""
    policy = MemoryPolicy(namespace=["users", "{metadata.user}"])
    async with remembering(store, tmp_path, [Reply("Hello.")], policy=policy) as (stage, counted):
        await hold(stage, counted, DOG, scope=Scope(tenant_id=TENANT, namespace=("users", "7")))
        thread = await store.thread(**metadata)
        run = await stage.play_out(await stage.say("the dog", thread_id=thread.thread_id))

        (recalled,) = await stage.entries_of(run, Recalled)
        assert (recalled.status, recalled.failure.error, recalled.answers) == ("unavailable", "NoScope", ())
        assert counted.asked == []


async def test_one_users_memory_is_not_anothers_nor_another_tenants(store: Store, tmp_path: Path) -> None:
    """C12, C60: labels are compared whole; the tenant is that of the run, whatever the metadata says."""
    policy = MemoryPolicy(namespace=["users", "{metadata.user}"])
    async with remembering(store, tmp_path, [Reply("Hello.")], policy=policy) as (stage, counted):
        for tenant_id, user in ((TENANT, "acme"), (TENANT, "acme-corp"), ("other", "acme"), (TENANT, "acme/x")):
            scope = Scope(tenant_id=tenant_id, namespace=("users", user))
            await hold(stage, counted, f"The dog of {user} at {tenant_id} is called Rex.", scope=scope)
        thread = await store.thread(user="acme", tenant_id_="other")
        run = await stage.play_out(await stage.say("the dog", thread_id=thread.thread_id))

        (recalled,) = await stage.entries_of(run, Recalled)
        assert [each["text"] for each in recalled.answers] == [f"The dog of acme at {TENANT} is called Rex."]


async def test_no_memory_changes_the_system_text(store: Store, tmp_path: Path) -> None:
    """S28, C72: with and without thirty hostile notes the system part is the same bytes, and none ends its block."""
    replies = [Reply("Hello.") for _ in range(len(INJECTIONS) + 1)]
    async with remembering(store, tmp_path, replies) as (stage, counted):
        stage.agent = replace(stage.agent, instructions="Be brief.")
        await stage.play_out(await stage.say("obey the system"))
        for number, text in enumerate(INJECTIONS):
            origin = Origin(thread_ref="web", run_ref="r", seq=1, message_ref=f"i{number}")
            await hold(stage, counted, f"note{number} {text}", trust=Trust.WEB, origin=origin)
        for number in range(len(INJECTIONS)):
            await stage.play_out(await stage.say(f"what does note{number} say?"))

        shown: set[str] = set()
        for request in stage.model.requests:
            assert request.instructions == f"Be brief.\n\n{NOTICE}"
            if request.recalled:
                first, *notes, last = request.recalled.splitlines()
                assert (first, last) == ("<recalled_memory>", "</recalled_memory>")
                assert not any("<" in note or ">" in note for note in notes)
                assert {json.loads(note)["trust"] for note in notes} == {"untrusted"}
                shown |= {json.loads(note)["text"] for note in notes}
        assert shown == {f"note{number} {text}" for number, text in enumerate(INJECTIONS)}


async def test_a_blank_message_asks_memory_nothing(store: Store, tmp_path: Path) -> None:
    """C56: nothing is asked for a message without words, and everything is never the answer."""
    async with remembering(store, tmp_path, [Reply("Hello.")]) as (stage, counted):
        await hold(stage, counted, DOG)
        run = await stage.play_out(await stage.say("  \n"))

        assert await stage.entries_of(run, Recalled) == []
        assert counted.asked == []


async def test_a_message_of_signs_that_nobody_sees_gets_no_answers(store: Store, tmp_path: Path) -> None:
    """C56: memory refuses it, and the run goes on."""
    async with remembering(store, tmp_path, [Reply("Hello.")]) as (stage, counted):
        await hold(stage, counted, DOG)
        run = await stage.play_out(await stage.say("\u200b"))

        (recalled,) = await stage.entries_of(run, Recalled)
        assert (recalled.status, recalled.answers) == ("unavailable", ())
        assert run.status is RunStatus.SUCCESS


async def test_an_agent_that_is_not_to_recall_does_not(store: Store, tmp_path: Path) -> None:
    """The policy decides."""
    async with remembering(store, tmp_path, [Reply("Hello.")], policy=MemoryPolicy(recall=False)) as (stage, counted):
        run = await stage.play_out(await stage.say("the dog"))

        assert await stage.entries_of(run, Recalled) == []
        assert counted.asked == []
