"""Writes the golden journals: `python -m tests.replay.record`.

Run it for a new kind of story, and never to make a failing test pass: journals of that age are in people's databases.
It leaves those that are there alone, unless their names are given.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from tests.conformance.store import Store
from tests.integration.state.mortality import Fate, mortal
from tests.integration.state.refund_story import STORY, TOOLS, play_story
from tests.integration.state.remembering import remembering
from tests.integration.state.stage import Stage, open_stage
from tests.replay.golden import FOLDER, write_golden
from tests.support.factories import Reply, a_submission, human
from threadmark.compaction import CompactionService, Order, Policy
from threadmark.compaction import migrate as migrate_compaction
from threadmark.state import CancelAction, Run, RunRequest, StateUpdated, Update, migrate, open_engine, update_state
from threadmark.workers.agents.compaction_policy import CompactionPolicy
from threadmark.workers.agents.tool_context import ToolContext
from threadmark.workers.agents.tools import Effect, RetryAfter, tool
from threadmark.workers.models.errors import ModelUnavailable

LONG = "Here is what I found about the matter, and it is of no great use. " * 12
Story = Callable[[Store, Path], Awaitable[Run]]


@tool(effect=Effect.KEYED)
async def mail(to: str, context: ToolContext) -> dict[str, str]:
    """Fail twice, and tell of it."""
    context.emit({"attempt": context.attempt})
    if context.attempt < 3:
        raise OSError("no route to the post office\x00")
    return {"to": to, "$ref": "#/sent"}


@tool(effect=Effect.ONCE)
async def pay(cents: int, context: ToolContext) -> int:
    """Ask for time, and then break in the middle of a payment."""
    if context.attempt == 1:
        raise RetryAfter(1.0)
    if context.attempt == 2:
        raise ConnectionError("the line went dead")
    return cents


@tool(effect=Effect.ONCE, needs_approval=True)
async def delete(path: str) -> str:
    """Delete, if a person agrees."""
    return f"{path} is gone"


async def refund(store: Store, folder: Path) -> Run:
    """The refund story, with an approval."""
    async with open_stage(store, folder, STORY) as stage:
        await play_story(mortal(stage, Fate(), TOOLS))
        return (await store.runs(1))[-1]


async def doubt(store: Store, folder: Path) -> Run:
    """Failures of model and tools, a doubt that is settled, results that JSON has to spell."""
    replies = [
        Reply("First.", [("mail", {"to": "ann"}), ("nothing", {})]),
        Reply("Then.", [("pay", {"cents": 5})]),
        Reply("Done."),
    ]
    async with open_stage(store, folder, replies, [mail, pay]) as stage:
        stage.model.faults = [ModelUnavailable("busy")]
        run = await stage.play_out(await stage.say("mail and pay\x00 \U0001f642"))
        await stage.resolve(run, {"outcome": "did_not_happen"})
        return await stage.play_out(run)


async def branches(store: Store, folder: Path) -> Run:
    """Questions that fall away, a fork, a rollback, an update, and a thread that is left with an open question."""
    replies = [
        Reply("May I?", [("delete", {"path": "a"})]),
        Reply("As you like."),
        Reply("May I now?", [("delete", {"path": "b"})]),
    ]
    async with open_stage(store, folder, replies, [delete]) as stage:
        run = await stage.play_out(await stage.say("tidy up"))
        await stage.play_out(await stage.say("never mind", thread_id=run.thread_id))
        fork = a_submission(thread_id=run.thread_id, request=RunRequest(from_seq=3))
        forked = (await store.submission(fork)).run
        assert forked is not None
        await stage.play_out(forked)
        (wait,) = await stage.waits(run)
        await stage.answer(wait, {"approve": False, "reason": "not today"})
        await _roll_back(stage, run)
        await _update(store, run, "and then?")
        return await stage.play_out(await stage.go_on(run))


async def memory(store: Store, folder: Path) -> Run:
    """What is remembered in one run is recalled in another; then memory does not answer."""
    replies = [
        Reply("Noted.", [("remember", {"text": "The dog is called Rex.", "subject": "dog", "attribute": "name"})]),
        Reply("I will keep it."),
        Reply("Rex [memory]."),
        Reply("I cannot say."),
    ]
    async with remembering(store, folder, replies) as (stage, counted):
        run = await stage.play_out(await stage.say("The dog is called Rex."))
        await stage.play_out(await stage.say("What is the dog called?", thread_id=run.thread_id))
        stage.parts = replace(stage.parts, recollection=None)
        assert len(counted.asked) == 2
        return await stage.play_out(await stage.say("And the cat?", thread_id=run.thread_id))


async def views(store: Store, folder: Path) -> Run:
    """A thread that is compacted in a run and from outside, taken back, and forked to before all of it."""
    async with open_stage(store, folder, [Reply(LONG)] * 9) as stage:
        service = CompactionService(store.database, now=stage.clock.now)
        policy = Policy(keep_last_turns=1, min_gain=0.0, summary_tokens=120)
        compaction = CompactionPolicy(request_tokens_max=900, policy=policy)
        stage.agent = replace(stage.agent, compaction=compaction)
        stage.parts = replace(stage.parts, compactor=stage.compactor(service))
        run = await stage.play_out(await stage.say("Never pay more than $100."))
        for number in range(5):
            run = await stage.play_out(await stage.say(f"And OPS-{number}?", thread_id=run.thread_id))
        (first, *_) = await service.compactions.of_thread(run.tenant_id, run.thread_id)
        kept = await service.views.restore(run.tenant_id, first.compaction_id, requested_by="ann")
        await service.views.undo(run.tenant_id, run.thread_id, kept.view.view_id, requested_by="ann")
        ordered, _ = await service.compactions.begin(run.tenant_id, run.thread_id, Order(key="by hand", policy=policy))
        await service.compactions.perform(ordered.compaction_id, holder="ann")
        forked = (await store.submission(a_submission(thread_id=run.thread_id, request=RunRequest(from_seq=2)))).run
        assert forked is not None
        return await stage.play_out(forked)


async def _roll_back(stage: Stage, run: Run) -> None:
    turn = await stage.turn()
    await stage.cancel(run, CancelAction.ROLLBACK)
    await turn.take()
    assert (await stage.state(run)).open_waits == []
    await stage.play_out(await stage.say("go on", thread_id=run.thread_id))


async def _update(store: Store, run: Run, text: str) -> None:
    thread = await store.thread(run.thread_id)
    entry = StateUpdated(messages=(human(text, "human-written"),), removed=("human-never mind",), by="ann")
    change = Update(thread=thread, entry=entry, expected_seq=thread.head_seq)
    await store.write(lambda connection: update_state(connection, change, store.now_us()))


STORIES: dict[str, Story] = {"refund": refund, "doubt": doubt, "branches": branches, "memory": memory, "views": views}


async def record(name: str) -> None:
    """Play a story and write its journal."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/state.db"
        engine = open_engine(url, write=True)
        migrate(engine)
        migrate_compaction(engine)
        engine.dispose()
        store = Store.open(url)
        run = await STORIES[name](store, Path(folder))
        thread = await store.thread(run.thread_id)
        write_golden(
            name, await store.entries(thread.number), await store.journal.read_leaves(thread.number), thread.lineage
        )
        await store.database.close()


if __name__ == "__main__":
    missing = [name for name in STORIES if not (FOLDER / f"{name}.jsonl").exists()]
    for each in sys.argv[1:] or missing:
        asyncio.run(record(each))
        print(f"wrote {each}")
