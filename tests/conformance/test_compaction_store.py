"""Compactions are ordered once, and committed in one transaction: over both databases."""

import asyncio
from functools import partial

import pytest
from sqlalchemy import Connection, Table, func, select

from tests.conformance.compacting import Compacting, compacting, compaction_engine
from tests.support.bad_summarisers import Recorder, under_headings
from tests.support.factories import TENANT
from threadmark.compaction import (
    WHOLE_VIEW,
    CompactionStatus,
    DropFilter,
    Policy,
    RunInProgress,
    SummariserFailed,
    SummaryPrompt,
    SummaryReply,
)
from threadmark.compaction.tables import METADATA
from threadmark.state import KeyReused, NotFound

__all__ = ["compacting", "compaction_engine"]

OTHER_TENANT = "another tenant"
#: Keeps next to nothing, so that there are drops to speak of.
SPARE = Policy(keep_last_turns=1, min_gain=0.0, summary_tokens=40, appendix_tokens=0)


async def test_a_thread_that_was_never_compacted_shows_everything(compacting: Compacting) -> None:
    """Its view is called `whole`, and nothing is stored for it."""
    await compacting.thread(turns=2)

    shown = await compacting.service.views.show(TENANT, "thread-1")

    assert (shown.kept.view.view_id, shown.is_current, len(shown.rendered.parts)) == (WHOLE_VIEW, True, 4)


async def test_a_compaction_is_committed_with_its_ledger(compacting: Compacting) -> None:
    """Segment, ledger, outbox and the move of the view are there together, and the account balances."""
    await compacting.thread()

    done = await compacting.compact()

    assert (done.status, done.error) == (CompactionStatus.COMMITTED, None)
    assert done.covers[0] < done.covers[1]
    assert done.tokens_after < done.tokens_before
    assert done.shown_ratio == 1.0
    for counts in done.totals.values():
        status_sum = sum(count for status, count in counts.items() if status not in ("total", "introduced"))
        assert status_sum == counts["total"] > 0
    shown = await compacting.service.views.show(TENANT, "thread-1")
    assert (shown.kept.view.view_id, shown.kept.view.compaction_id) == (done.view_id, done.compaction_id)
    assert shown.kept.ledgers == (done.compaction_id,)
    ledger = [drop async for drop in compacting.service.drops.ledger(TENANT, done.compaction_id)]
    assert len([drop for drop in ledger if drop.row.status != "introduced"]) == sum(
        counts["total"] for counts in done.totals.values()
    )


async def test_the_same_order_is_the_same_compaction(compacting: Compacting) -> None:
    """Ordered five times at once and performed by all: one commit. The key of another order is refused."""
    await compacting.thread()
    order = compacting.order(key="once")

    begun = await asyncio.gather(*(compacting.service.compactions.begin(TENANT, "thread-1", order) for _ in range(5)))
    performed = await asyncio.gather(
        *(
            compacting.service.compactions.perform(done.compaction_id, holder=f"worker-{number}")
            for number, (done, _) in enumerate(begun)
        )
    )

    assert len({done.compaction_id for done, _ in begun}) == 1
    assert sorted(is_new for _, is_new in begun) == [False] * 4 + [True]
    assert CompactionStatus.COMMITTED in {done.status for done in performed}
    assert len(await compacting.service.views.of_thread(TENANT, "thread-1")) == 1
    with pytest.raises(KeyReused):
        await compacting.service.compactions.begin(
            TENANT, "thread-1", compacting.order(key="once", policy=Policy(keep_last_turns=2))
        )


async def test_what_was_committed_is_not_performed_again(compacting: Compacting) -> None:
    """A redelivery finds the end, asks no model and moves no view."""
    await compacting.thread()
    done = await compacting.compact()
    recorder = Recorder()

    again = await compacting.service.compactions.perform(done.compaction_id, holder="late", summariser=recorder)

    assert again == done
    assert recorder.prompts == []


async def test_nothing_to_do_is_an_answer(compacting: Compacting) -> None:
    """A thread of one turn is refused with its reason, and stays refused under the key."""
    await compacting.thread(turns=1)

    done = await compacting.compact(key="too early")

    assert (done.status, done.error_code) == (CompactionStatus.REFUSED, "nothing_to_cover")
    assert (await compacting.service.views.show(TENANT, "thread-1")).kept.view.view_id == WHOLE_VIEW


async def test_a_preview_writes_nothing(compacting: Compacting) -> None:
    """It has the plan and the whole account, and a compaction after it does what it said."""
    await compacting.thread()
    before = await compacting.render_hash()

    preview = await compacting.service.compactions.preview(TENANT, "thread-1", compacting.order())
    done_views = await compacting.service.views.of_thread(TENANT, "thread-1")
    done = await compacting.compact()

    assert preview.plan is not None
    assert preview.proposal is not None
    assert done_views == []
    assert await compacting.service.compactions.of_thread(TENANT, "thread-1") == [done]
    assert await compacting.render_hash(view_id=WHOLE_VIEW) == before
    assert preview.plan.covered == done.plan.covered if done.plan else False
    assert preview.proposal.tokens_after == done.tokens_after


async def test_a_run_that_holds_the_thread_comes_first(compacting: Compacting) -> None:
    """Outside of the run nothing moves its view; when it has let go, the same compaction is done."""
    await compacting.thread()
    run = await compacting.store.accept("wait", thread_id="thread-1")
    claimed, writer = await compacting.store.hold(run)
    await compacting.store.begin(claimed, writer)

    waiting = await compacting.compact(key="busy")

    assert (waiting.status, waiting.error_code) == (CompactionStatus.PLANNED, "run_in_progress")
    assert [each.compaction_id for each in await compacting.service.compactions.unfinished()] == [waiting.compaction_id]
    inside = await compacting.service.compactions.perform(
        waiting.compaction_id, holder="the run", fence=claimed.thread.fence
    )
    assert inside.status is CompactionStatus.COMMITTED
    with pytest.raises(RunInProgress):
        await compacting.service.views.restore(TENANT, inside.compaction_id)


async def test_a_run_that_lost_its_lease_compacts_nothing(compacting: Compacting) -> None:
    """The fence decides, in the transaction that would move the view."""
    await compacting.thread()
    done, _ = await compacting.service.compactions.begin(TENANT, "thread-1", compacting.order())

    late = await compacting.service.compactions.perform(done.compaction_id, holder="late", fence=1)

    assert (late.status, late.error_code) == (CompactionStatus.ABORTED, "lease_lost")
    assert await compacting.service.views.of_thread(TENANT, "thread-1") == []


async def test_what_is_appended_while_a_model_summarises_stays(compacting: Compacting) -> None:
    """A whole turn comes and goes during the model's call: it is in the new view, once and in order."""
    await compacting.thread()
    appended: list[int] = []

    class Slow(Recorder):
        async def summarise(self, prompt: SummaryPrompt) -> SummaryReply:
            appended.append(await compacting.say(text=f"What about OPS-{777 + len(appended)}?"))
            raise SummariserFailed("overloaded")

    done = await compacting.compact(summariser=Slow())

    text = await compacting.text()
    assert done.status is CompactionStatus.COMMITTED
    assert done.strategy == "extractive"
    assert appended
    assert [text.count(f"What about OPS-{777 + number}?") for number in range(len(appended))] == [1] * len(appended)
    assert text.index("</compacted>") < text.index("What about OPS-777?")


async def test_a_second_attempt_pays_for_no_chunk_twice(compacting: Compacting) -> None:
    """The worker dies after the first of several chunks: the next worker asks for the others only."""
    await compacting.thread(turns=12)
    policy = Policy(keep_last_turns=1, min_gain=0.0, chunk_tokens=600, appendix_tokens=2_000)
    order, asked = compacting.order(policy=policy), []

    class Killed(Exception):
        pass

    class Model:
        def __init__(self, calls_max: int) -> None:
            self.calls_left = calls_max

        async def summarise(self, prompt: SummaryPrompt) -> SummaryReply:
            if not self.calls_left:
                raise Killed
            self.calls_left -= 1
            asked.append(prompt.key)
            return SummaryReply(text=under_headings([]))

    done, _ = await compacting.service.compactions.begin(TENANT, "thread-1", order)
    with pytest.raises(Killed):
        await compacting.service.compactions.perform(done.compaction_id, holder="first", summariser=Model(2))
    await compacting.say()
    # The holder of the same name is the same process, started again: it need not wait for its own time-out.
    ended = await compacting.service.compactions.perform(done.compaction_id, holder="first", summariser=Model(99))

    assert ended.status is CompactionStatus.COMMITTED
    assert len(asked) == len(set(asked)) > 2


async def test_ledgers_verify_from_the_log_alone(compacting: Compacting) -> None:
    """Each by itself and all as a chain; merged segments too, after turns, restores and more compactions."""
    await compacting.thread()
    for _ in range(4):
        await compacting.compact()
        await compacting.say()
    last = await compacting.compact()
    await compacting.service.views.restore(TENANT, last.compaction_id)

    checks = await compacting.service.verify_thread(TENANT, "thread-1")

    assert [check.damage for check in checks] == [None] * 5
    assert (await compacting.service.verify(TENANT, last.compaction_id)).damage is None


async def test_a_tenant_sees_nothing_of_another(compacting: Compacting) -> None:
    """Every verb answers as if the thing did not exist."""
    await compacting.thread()
    done = await compacting.compact()
    service, key = compacting.service, done.compaction_id
    drop = (await service.drops.page(TENANT, key, DropFilter(statuses=())))[0]

    for asked in (
        service.compactions.get(OTHER_TENANT, key),
        service.compactions.of_thread(OTHER_TENANT, "thread-1"),
        service.compactions.begin(OTHER_TENANT, "thread-1", compacting.order()),
        service.compactions.preview(OTHER_TENANT, "thread-1", compacting.order()),
        service.views.show(OTHER_TENANT, "thread-1"),
        service.views.restore(OTHER_TENANT, key),
        service.views.restore_drops(OTHER_TENANT, key, [drop.drop_id]),
        service.drops.page(OTHER_TENANT, key, DropFilter()),
        service.drops.source(OTHER_TENANT, drop.drop_id),
        service.verify(OTHER_TENANT, key),
    ):
        with pytest.raises(NotFound):
            await asked


async def test_an_erasure_takes_the_words_and_leaves_the_account(compacting: Compacting) -> None:
    """No view, segment, ledger or outbox has them any more; every ledger verifies; done again it finds nothing."""
    await compacting.thread(turns=3)
    seq = await compacting.say(text="Never call me on +49 170 5550199, and SECRET-99 is mine.") - 2
    for _ in range(4):
        await compacting.say()
    done = await compacting.compact()
    assert "SECRET-99" in await compacting.text()

    counts = await compacting.service.erase(TENANT, "thread-1", [seq])
    again = await compacting.service.erase(TENANT, "thread-1", [seq])

    assert (counts.messages, counts.segments) == (1, 1)
    assert counts.rows > 0
    assert (again.rows, again.promotions) == (0, 0)
    assert "SECRET-99" not in await compacting.text()
    ledger = [drop async for drop in compacting.service.drops.ledger(TENANT, done.compaction_id)]
    assert not any("SECRET-99" in f"{drop.row.text} {drop.row.canon}" for drop in ledger)
    assert [drop for drop in ledger if drop.row.status == "erased"]
    assert [check.damage for check in await compacting.service.verify_thread(TENANT, "thread-1")] == [None]
    for name in ("compaction_row", "compaction_segment", "compaction_promotion", "compaction_analysis"):
        table = METADATA.tables[name]
        stored = await compacting.store.read(lambda connection, table=table: connection.execute(select(table)).all())  # type: ignore[misc]
        assert "SECRET-99" not in repr(stored)
        assert "secret-99" not in repr(stored)


def count_rows(connection: Connection, table: Table) -> int:
    """How many rows a table has."""
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


async def test_a_deleted_thread_leaves_nothing(compacting: Compacting) -> None:
    """Nothing of what it said stays in a ledger, a segment or an outbox."""
    await compacting.thread()
    done = await compacting.compact()

    await compacting.delete()

    with pytest.raises(NotFound):
        await compacting.service.compactions.get(TENANT, done.compaction_id)
    for table in METADATA.sorted_tables:
        assert await compacting.store.read(partial(count_rows, table=table)) == 0, table.name
    await compacting.thread()
    assert (await compacting.service.views.show(TENANT, "thread-1")).kept.view.view_id == WHOLE_VIEW
