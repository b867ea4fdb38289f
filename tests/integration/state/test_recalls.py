"""What a run knew, and why: from the journal, whatever has become of memory since."""

from pathlib import Path
from typing import Any

from tests.conformance.store import Store
from tests.integration.state.remembering import remembering
from tests.integration.state.stage import Stage
from tests.support.factories import TENANT, Reply, a_submission
from threadmark.memory import Change, Scope
from threadmark.state import ModelReplied, Run, RunRequest, RunStarted, lineage_seeing, visible
from threadmark.workers.turn.recall_history import RecallRecord, recalls_of

HOME = Scope(tenant_id=TENANT, namespace=("assistants", "chat"))


def calls(name: str, **arguments: Any) -> Reply:
    """A reply that calls a tool."""
    return Reply("", [(name, arguments)])


async def recalls_by(stage: Stage, run: Run) -> list[RecallRecord]:
    """The recalls of a run."""
    thread = await stage.store.thread(run.thread_id)
    entries = await stage.entries(run)
    leaves = await stage.store.journal.read_leaves(run.thread)
    seen = await stage.store.run(run)
    return recalls_of(visible(entries, lineage_seeing(entries, leaves, thread.lineage, run.number)), seen.execution_id)


async def test_a_journal_shows_what_a_run_knew_after_a_retraction(store: Store, tmp_path: Path) -> None:
    """The answers stay what they were: words, scores, reasons and sources."""
    replies = [
        calls("remember", text="The dog is called Rex."),
        Reply("Noted."),
        calls("recall", question="dog"),
        Reply("Rex."),
    ]
    async with remembering(store, tmp_path, replies) as (stage, counted):
        run = await stage.play_out(await stage.say("The dog is called Rex."))
        asking = await stage.play_out(await stage.say("What is the dog called?", thread_id=run.thread_id))
        before = await recalls_by(stage, asking)

        memory_id = before[0].answers[0]["memory_id"]
        change = Change(by="ann", now=stage.clock.now())
        await counted.memory.retract(memory_id, scope=HOME, reason="wrong", change=change)
        stage.model.replies = [*replies, Reply("I cannot say.")]
        later = await stage.play_out(await stage.say("And the dog?", thread_id=run.thread_id))

        assert await recalls_by(stage, asking) == before
        assert [each.tool for each in before] == [None, "recall"]
        assert before[1].question == {"question": "dog"}
        assert all(
            each.answers[0]["text"] == "The dog is called Rex." and each.answers[0]["because"] for each in before
        )
        assert [each.answers for each in await recalls_by(stage, later)] == [()]


async def test_a_fork_behind_a_recall_knew_it_too(store: Store, tmp_path: Path) -> None:
    """A branch is shown what was recalled for the message that it answers; memory is not asked again."""
    async with remembering(store, tmp_path, [calls("recall", question="Rex"), Reply("A dog.")]) as (stage, counted):
        run = await stage.play_out(await stage.say("Who is Rex?"))
        reply = next(each.seq for each in await stage.entries(run) if isinstance(each.entry, ModelReplied))
        fork = a_submission(thread_id=run.thread_id, request=RunRequest(from_seq=reply))
        forked = (await store.submission(fork)).run
        assert forked is not None
        await stage.play_out(forked)

        assert (await store.run(forked)).execution_id != run.execution_id
        assert [each.tool for each in await recalls_by(stage, forked)] == ["recall", None]
        assert [each.text for each in counted.asked].count("Who is Rex?") == 1


async def test_every_source_of_every_answer_leads_to_its_entry(store: Store, tmp_path: Path) -> None:
    """Of 100 facts stated, corrected and repeated in many threads, each source of each recalled answer resolves to a
    message, a run and a seq of a journal, and the quoted span is the very statement.
    """
    async with remembering(store, tmp_path, []) as (stage, _):
        thread_id = None
        for number in range(100):
            subject, value = f"item{number % 12}", f"shelf {number % 7}"
            line = f"{subject}.place = {value}"
            noted = [calls("remember", text=line, subject=subject, attribute="place", value=value), Reply("Noted.")]
            stage.model.replies = noted * 3
            stage.clock.pass_s(1)
            said = await stage.say(f"For the record:\n{line}\nThank you.", thread_id=thread_id)
            thread_id = None if number % 3 == 2 else (await stage.play_out(said)).thread_id
            await stage.play_out(said)
        stage.model.replies = [Reply("So it is.")]
        seen = 0
        for number in range(12):
            asking = await stage.play_out(await stage.say(f"Where is item{number}?"))
            for answer in [answer for each in await recalls_by(stage, asking) for answer in each.answers]:
                for source in answer["provenance"]:
                    await _resolves(stage, source, answer["text"])
                    seen += 1
        assert seen > 12


async def _resolves(stage: Stage, source: dict[str, Any], text: str) -> None:
    thread = await stage.store.thread(source["thread_ref"])
    entry = next(each.entry for each in await stage.store.entries(thread.number) if each.seq == source["seq"])
    assert isinstance(entry, RunStarted)
    assert entry.run_id == source["run_ref"]
    message = entry.messages[0]
    assert source["message_ref"] in (message.id, None)
    assert message.text[source["char_from"] : source["char_to"]] == text
