"""The log of recalls: by agents, once for each call, and gone with what was recalled: over both databases."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.compacting import Compacting, compacting, compaction_engine
from tests.support.factories import TENANT
from threadmark import recall_dropped
from threadmark.compaction import Drop, DropFilter, Policy
from threadmark.workers.agents.tool_context import ToolContext
from threadmark.workers.agents.tools import NonRetryable
from threadmark.workers.turn.thread_drops import ThreadDrops

__all__ = ["compacting", "compaction_engine"]

#: Keeps next to nothing, so that there are drops to speak of.
SPARE = Policy(keep_last_turns=1, min_gain=0.0, summary_tokens=40, appendix_tokens=0)


async def ask(work: Compacting, key: str, **arguments: Any) -> dict[str, Any]:
    """What the agent's tool answers in the call with this key."""
    context = ToolContext(
        thread_id="thread-1",
        run_id="run-1",
        step_key="tool-1-0",
        idempotency_key=key,
        attempt=1,
        data_dir=Path(),
        emit=lambda _: None,
        now=lambda: datetime.now(UTC),
        dropped=ThreadDrops(work.service, TENANT, "thread-1", "helper"),
    )
    return dict(await recall_dropped.perform(recall_dropped.arguments(arguments), context))


async def a_drop(work: Compacting) -> Drop:
    """An exact value that the view does not show any more."""
    await work.thread()
    done = await work.compact(policy=SPARE)
    chosen = DropFilter(statuses=("dropped",), units=("atom",))
    return next(each for each in await work.service.drops.page(TENANT, done.compaction_id, chosen) if each.row.sources)


async def test_what_an_agent_recalls_twice_is_suggested(compacting: Compacting) -> None:
    """A call that is repeated after a death is one recall; two calls are two."""
    drop = await a_drop(compacting)
    recalls = compacting.service.recalls
    for _ in range(2):
        answered = await ask(compacting, "call-1", query=drop.row.text, limit=1)
    assert [each["drop_id"] for each in answered["answers"]] == [drop.drop_id]
    once = await recalls.of_thread(TENANT, "thread-1")
    assert [(each.drop_id, each.how, each.requested_by) for each in once] == [(drop.drop_id, "agent", "agent helper")]
    assert await recalls.suggestions(TENANT, "thread-1") == []

    await ask(compacting, "call-2", query=drop.row.text, limit=1)

    (suggested,) = await recalls.suggestions(TENANT, "thread-1")
    assert (suggested.drop, suggested.recall_count, suggested.span) == (drop, 2, drop.row.sources[0])


async def test_a_recall_goes_with_its_source(compacting: Compacting) -> None:
    """With the erasure of the entries that said it, and with the thread."""
    drop = await a_drop(compacting)
    recalls = compacting.service.recalls
    for key in ("call-1", "call-2"):
        await ask(compacting, key, query=drop.row.text, limit=1)
    await compacting.service.erase(TENANT, "thread-1", {source.seq for source in drop.row.sources})
    assert await recalls.of_thread(TENANT, "thread-1") == []
    assert await recalls.suggestions(TENANT, "thread-1") == []

    await recalls.note(TENANT, "thread-1", [drop.drop_id], "opened", requested_by="ann", key="k")
    await compacting.delete()
    await compacting.thread()
    assert await recalls.of_thread(TENANT, "thread-1") == []


async def test_an_agent_opens_a_summary(compacting: Compacting) -> None:
    """By the id that the summary bears: its messages, whole; one of another thread is not found."""
    await compacting.thread()
    before = (await compacting.service.compactions.load(TENANT, "thread-1")).entries
    done = await compacting.compact()
    segment_id = str(done.compaction_id)

    answered = await ask(compacting, "call-1", summary_id=segment_id, budget_tokens=8_000)

    covered = [each for each in before if done.covers[0] <= each.seq <= done.covers[1]]
    assert [(each["seq"], each["text"]) for each in answered["messages"]] == [
        (each.seq, each.text()) for each in covered
    ]
    assert answered["next_seq"] is None
    with pytest.raises(NonRetryable, match="no summary"):
        await ask(compacting, "call-2", summary_id="another")
