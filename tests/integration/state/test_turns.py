"""Whole turns: what they record, what they cost, and what each kind of failure comes to."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.store import Store
from tests.integration.state.stage import open_stage
from tests.support.factories import Reply
from tests.support.waiting import wait_until
from threadmark.state import (
    Failure,
    ModelReplied,
    ParkReason,
    RunSettled,
    RunStarted,
    RunStatus,
    StepFailed,
    StepIntended,
    ToolReturned,
    TurnStarted,
    kind_of,
)
from threadmark.workers.agents.tool_context import ToolContext
from threadmark.workers.agents.tools import Effect, NonRetryable, RetryPolicy, Tool, tool
from threadmark.workers.models.errors import ModelRefused, ModelUnavailable

DONE = Reply("All done.")


def a_tool(effect: Effect, *outcomes: Any, seen: list[ToolContext] | None = None, **options: Any) -> Tool:
    """A tool that comes to each outcome in turn, and to the last one from then on."""
    left = list(outcomes)

    @tool(effect=effect, name="act", **options)
    async def act(context: ToolContext, amount: int = 1) -> Any:
        if seen is not None:
            seen.append(context)
        outcome = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return act


def calling(count: int = 1) -> list[Reply]:
    """A model that asks for so many calls at once, and is done then."""
    return [Reply("Let me see.", [("act", {"amount": number}) for number in range(count)]), DONE]


async def test_a_conversation_is_recorded_entry_by_entry(store: Store, tmp_path: Path) -> None:
    """Input, reply, result, reply, end: and nothing else."""
    async with open_stage(store, tmp_path, calling(), [a_tool(Effect.PURE, {"found": 1})]) as stage:
        run = await stage.say("hello")
        await stage.play()

        entries = [each.entry for each in await stage.entries(run)]
        assert [type(each) for each in entries] == [
            RunStarted,
            TurnStarted,
            ModelReplied,
            ToolReturned,
            ModelReplied,
            RunSettled,
        ]
        assert [message.content for message in await stage.messages(run)] == [
            "hello",
            "Let me see.",
            '{"found":1}',
            "All done.",
        ]
        assert (await store.run(run)).status is RunStatus.SUCCESS


async def test_a_sequential_step_costs_one_commit_and_a_new_thread_no_read(store: Store, tmp_path: Path) -> None:
    """Result and next intent travel together; n steps are n commits, and one for the end."""
    replies = [Reply("Next.", [("act", {"amount": number})]) for number in range(10)]
    async with open_stage(store, tmp_path, [*replies, DONE], [a_tool(Effect.ONCE, "ok")]) as stage:
        run = await stage.say("hello")
        turn = await stage.turn()
        commits, reads = store.database.commit_count, store.database.read_count

        await turn.take()

        commits, reads = store.database.commit_count - commits, store.database.read_count - reads
        steps = len(await stage.entries_of(run, ModelReplied)) + len(await stage.entries_of(run, ToolReturned))
        assert (steps, commits, reads) == (21, 22, 0)
        assert (await store.run(run)).status is RunStatus.SUCCESS


async def test_parallel_calls_are_journaled_each_as_it_ends(store: Store, tmp_path: Path) -> None:
    """A crash takes along only what had not ended; the transcript has the results in the order of the calls."""
    async with open_stage(store, tmp_path, calling(2)) as stage:
        run = await stage.say()

        async def is_journaled() -> bool:
            return len(await stage.entries_of(run, ToolReturned)) == 1

        @tool(effect=Effect.PURE)
        async def act(amount: int) -> str:
            """End in the other order."""
            if amount == 0:
                await wait_until(is_journaled, description="the result of the second call in the journal")
            return f"result {amount}"

        await stage.play(act)

        assert [each.value for each in await stage.entries_of(run, ToolReturned)] == ["result 1", "result 0"]
        assert [message.content for message in (await stage.messages(run))[2:4]] == ["result 0", "result 1"]


async def test_a_keyed_tool_is_attempted_again_with_the_same_key(store: Store, tmp_path: Path) -> None:
    """The run parks between its attempts; the other side knows the repetition by its key."""
    seen: list[ToolContext] = []
    failing = a_tool(Effect.KEYED, OSError("no route"), OSError("no route"), "sent", seen=seen)
    async with open_stage(store, tmp_path, calling(), [failing]) as stage:
        run = await stage.say()
        dues = []
        for _ in range(2):
            began_us = stage.parts.now_us()
            await stage.play()
            parked = await store.run(run)
            assert (parked.status, parked.parked) == (RunStatus.PENDING, ParkReason.BACKOFF)
            dues.append(parked.due_at_us - began_us)
            stage.clock.pass_s(dues[-1] / 1_000_000)
        await stage.play()

        assert dues == [1_000_000, 2_000_000]
        assert [context.attempt for context in seen] == [1, 2, 3]
        assert len({context.idempotency_key for context in seen}) == 1
        assert len(await stage.entries_of(run, StepIntended)) == 1
        assert [each.failure for each in await stage.entries_of(run, StepFailed)] == [
            Failure("OSError", "no route")
        ] * 2
        assert [each.attempt for each in await stage.entries_of(run, ToolReturned)] == [3]


@pytest.mark.parametrize(
    ("outcome", "policy", "attempts"),
    [
        (NonRetryable("never"), RetryPolicy(attempt_max=None), 1),
        (OSError("no route"), RetryPolicy(attempt_max=1), 1),
        (OSError("no route"), RetryPolicy(attempt_max=3), 3),
    ],
)
async def test_the_model_learns_that_a_tool_failed_for_good(
    store: Store, tmp_path: Path, outcome: Exception, policy: RetryPolicy, attempts: int
) -> None:
    """The call gets an error result, and the run goes on: the model decides what comes next."""
    seen: list[ToolContext] = []
    failing = a_tool(Effect.IDEMPOTENT, outcome, seen=seen, retry=policy)
    async with open_stage(store, tmp_path, calling(), [failing]) as stage:
        run = await stage.say()

        assert (await stage.play_out(run)).status is RunStatus.SUCCESS

        (result,) = await stage.entries_of(run, ToolReturned)
        assert (len(seen), result.outcome, result.attempt) == (attempts, "error", attempts)
        assert (await stage.messages(run))[2].content == str(outcome)


async def test_a_tool_that_does_not_come_back_in_time_is_cancelled_and_attempted_again(
    store: Store, tmp_path: Path
) -> None:
    """A time-out is a failure like others; its clean-up ran."""
    cleaned_up = []

    @tool(effect=Effect.KEYED, name="act", timeout_s=0.01, retry=RetryPolicy(attempt_max=2))
    async def act(amount: int) -> str:
        """Hang."""
        try:
            await asyncio.Event().wait()
        finally:
            cleaned_up.append(amount)
        return "never"

    async with open_stage(store, tmp_path, calling(), [act]) as stage:
        run = await stage.say()
        await stage.play_out(run)

        assert cleaned_up == [0, 0]
        (failed,) = await stage.entries_of(run, StepFailed)
        assert failed.failure.error == "ToolTimedOut"
        (result,) = await stage.entries_of(run, ToolReturned)
        assert result.outcome == "error"
        assert "did not return within 0.01 s" in result.failure.message


async def test_a_model_that_is_away_is_asked_again_when_it_said(store: Store, tmp_path: Path) -> None:
    """With the same key; the run waits for the longer of its own back-off and the server's wish."""
    async with open_stage(store, tmp_path, [DONE]) as stage:
        stage.model.faults = [ModelUnavailable("busy"), ModelUnavailable("busy", retry_after_s=20.0)]
        run = await stage.say()
        dues = []
        for _ in range(2):
            began_us = stage.parts.now_us()
            await stage.play()
            dues.append((await store.run(run)).due_at_us - began_us)
            stage.clock.pass_s(dues[-1] / 1_000_000)
        await stage.play()

        assert dues == [500_000, 20_000_000]
        assert (await store.run(run)).status is RunStatus.SUCCESS
        assert len({request.idempotency_key for request in stage.model.requests}) == 1
        assert [each.attempt for each in await stage.entries_of(run, ModelReplied)] == [3]


@pytest.mark.parametrize(
    ("faults", "call_count"),
    [([ModelRefused("no such model")], 1), ([ModelUnavailable("busy")] * 3, 3)],
)
async def test_a_model_that_gives_no_reply_ends_the_run_and_the_thread_goes_on(
    store: Store, tmp_path: Path, faults: list[Exception], call_count: int
) -> None:
    """The failure is reported; the next run asks again."""
    async with open_stage(store, tmp_path, [DONE], model_attempt_max=3) as stage:
        stage.model.faults = list(faults)
        run = await stage.say()

        ended = await stage.play_out(run)

        assert (ended.status, ended.reason, len(stage.model.requests)) == (RunStatus.ERROR, "model", call_count)
        assert ended.failure == Failure(type(faults[-1]).__name__, str(faults[-1]))
        assert (await stage.play_out(await stage.go_on(run))).status is RunStatus.SUCCESS


async def test_custom_events_are_kept_with_the_entry_that_follows_them(store: Store, tmp_path: Path) -> None:
    """A reader that comes late finds them there, in order."""

    @tool(effect=Effect.PURE, name="act")
    async def act(context: ToolContext, amount: int) -> str:
        """Tell of progress."""
        context.emit({"progress": amount})
        context.emit("nearly there\u2028\x00")
        return "ok"

    async with open_stage(store, tmp_path, calling(), [act]) as stage:
        run = await stage.say()
        await stage.play()

        emitted = {kind_of(each.entry): each.entry.emitted for each in await stage.entries(run) if each.entry.emitted}
        assert emitted == {"tool_returned": ({"progress": 0}, "nearly there\u2028\x00")}


async def test_a_run_without_input_on_an_empty_thread_has_nothing_to_do(store: Store, tmp_path: Path) -> None:
    """It ends well, without a model call."""
    async with open_stage(store, tmp_path, [DONE]) as stage:
        thread = await store.thread()
        run = await store.accept(thread_id=thread.thread_id)

        assert (await stage.play_out(run)).status is RunStatus.SUCCESS
        assert stage.model.requests == []
