"""Erasure over both stores: what was said, recalled, repeated and cited is nowhere, and every journal verifies."""

import asyncio
from pathlib import Path
from typing import Any

from tests.conformance.store import Store
from tests.integration.state.remembering import Counted, remembering
from tests.integration.state.stage import Stage
from tests.support.factories import TENANT, Reply, human
from tests.support.waiting import wait_until
from threadmark.memory import Forget, Scope, Selector
from threadmark.state import Recalled, Run, RunRequest
from threadmark.state.threads.erasure import holders
from threadmark.workers.models import ModelReply, ModelRequest
from threadmark.workers.tasks.erased_json import ERASED

HOME = Scope(tenant_id=TENANT, namespace=("assistants", "chat"))
SECRET = "The code of the safe is XYZZY-123."
REPLIES = [
    Reply("", [("remember", {"text": SECRET, "subject": "safe", "attribute": "code", "value": "XYZZY-123"})]),
    Reply(f"You said: {SECRET}", pieces=["You said: ", SECRET]),
    Reply("", [("recall", {"question": "safe"})]),
    Reply(f"I know: {SECRET}"),
]


async def a_shared_secret(stage: Stage) -> tuple[Run, Run]:
    """A secret said in one run that another one recalls, by itself and by a tool, and repeats."""
    # Under an id of its own: what a client calls its message is no word of it.
    request = RunRequest(messages=(human(SECRET, "secret"),))
    source_run = await stage.play_out(await stage.say(request=request))
    stage.model.replies = REPLIES[2:]
    return source_run, await stage.play_out(await stage.say("What is the code of the safe?"))


async def erase(stage: Stage, counted: Counted, what: Forget) -> dict[str, int]:
    """Erase; the counts."""
    now = stage.clock.now()
    return dict((await counted.memory.erase(what, tenant_id=TENANT, now=now)).counts)


def found_in(folder: Path, words: bytes) -> list[str]:
    """The files that have the words."""
    return [path.name for path in folder.rglob("*") if path.is_file() and words in path.read_bytes()]


async def test_a_unique_string_is_found_nowhere_after_its_source_is_erased(store: Store, tmp_path: Path) -> None:
    """S38, F30: in no file of either database, log included; the journals of both runs verify and fold."""
    async with remembering(store, tmp_path, REPLIES) as (stage, counted):
        source_run, asker = await a_shared_secret(stage)
        assert {"state.db", "memory.db"} <= {name.removesuffix("-wal") for name in found_in(tmp_path, b"XYZZY")}

        counts = await erase(stage, counted, Forget(source=Selector(thread_ref=source_run.thread_id, seq=1)))

        assert found_in(tmp_path, b"XYZZY") == []
        assert counts["assertions"] == 1
        assert counts["journal_entries"] >= 6
        for run in (source_run, asker):
            assert all(SECRET not in str(message.content) for message in await stage.messages(run))


async def test_what_a_run_knew_shows_as_erased(store: Store, tmp_path: Path) -> None:
    """The answer keeps its id, its score and its place in the journal; its words are gone."""
    async with remembering(store, tmp_path, REPLIES) as (stage, counted):
        _, asker = await a_shared_secret(stage)
        (before,) = await stage.entries_of(asker, Recalled)

        await erase(stage, counted, Forget(subject="safe"))

        (after,) = await stage.entries_of(asker, Recalled)
        assert (after.answers[0]["memory_id"], after.answers[0]["score"]) == (
            before.answers[0]["memory_id"],
            before.answers[0]["score"],
        )
        assert (after.answers[0]["text"], after.block) == (ERASED, "")


async def test_what_others_said_stays(store: Store, tmp_path: Path) -> None:
    """Erasing one memory takes no word out of a thread that has nothing of it, nor out of another answer."""
    async with remembering(store, tmp_path, REPLIES) as (stage, counted):
        await a_shared_secret(stage)
        stage.model.replies = [Reply("", [("remember", {"text": "The dog is called Rex."})]), Reply("Noted.")]
        other = await stage.play_out(await stage.say("The dog is called Rex."))
        before = await stage.entries(other)

        await erase(stage, counted, Forget(subject="safe"))

        assert await stage.entries(other) == before
        assert [each.text for _, each in await counted.memory.list(scope=HOME)] == ["The dog is called Rex."]


async def test_erasing_again_finds_nothing(store: Store, tmp_path: Path) -> None:
    """A job that is begun again is harmless."""
    async with remembering(store, tmp_path, REPLIES) as (stage, counted):
        source_run, _ = await a_shared_secret(stage)
        what = Forget(source=Selector(thread_ref=source_run.thread_id))
        await erase(stage, counted, what)

        again = await erase(stage, counted, what)

        assert (again.get("assertions", 0), again["journal_entries"]) == (0, 0)


async def test_an_erasure_outlasts_a_run_that_knew_the_words(store: Store, tmp_path: Path) -> None:
    """F30: a reply that was being made from what is erased is erased as well when it comes."""
    async with remembering(store, tmp_path, REPLIES) as (stage, counted):
        source_run, _ = await a_shared_secret(stage)
        is_asked, may_answer = asyncio.Event(), asyncio.Event()

        async def reply(request: ModelRequest, on_delta: Any) -> ModelReply:
            assert "XYZZY" in request.recalled
            is_asked.set()
            await may_answer.wait()
            on_delta(f"I know: {SECRET}")
            return ModelReply(
                text=f"I know: {SECRET}",
                usage=REPLIES[0].usage,
                finish_reason="stop",
                model="scripted",
                cuts=(8 + len(SECRET),),
            )

        stage.model.reply = reply  # type: ignore[method-assign]
        run = await stage.say("What is the code of the safe?")
        taking = asyncio.create_task((await stage.turn()).take())
        await is_asked.wait()
        erasing = asyncio.create_task(erase(stage, counted, Forget(source=Selector(thread_ref=source_run.thread_id))))

        async def is_gone() -> bool:
            return not await counted.memory.list(scope=HOME)

        await wait_until(is_gone, description="memory to have lost the words")
        assert await store.read(lambda connection: holders(connection, [run.thread])) != {}
        may_answer.set()
        await asyncio.gather(taking, erasing)

        assert all(SECRET not in str(message.content) for message in await stage.messages(run))


async def test_a_tenant_erases_nothing_of_anothers(store: Store, tmp_path: Path) -> None:
    """S34, S38: a selector that names another tenant's thread names nothing."""
    async with remembering(store, tmp_path, REPLIES) as (stage, counted):
        source_run, _ = await a_shared_secret(stage)
        before = await stage.entries(source_run)
        what = Forget(source=Selector(thread_ref=source_run.thread_id))
        done = await counted.memory.erase(what, tenant_id="other", now=stage.clock.now())

        assert (done.counts["journal_entries"], done.counts.get("assertions", 0)) == (0, 0)
        assert await stage.entries(source_run) == before
