"""What a compaction drops goes to memory before it is gone: through an outbox, once, with where it came from."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import select

from tests.conformance.store import Store
from tests.integration.state.remembering import Counted, remembering
from tests.integration.state.stage import Stage
from tests.support.factories import TENANT, Reply
from threadmark.compaction import PROMOTE, CompactionService, DropFilter, Order, Policy, migrate
from threadmark.compaction.tables import METADATA
from threadmark.memory import ErasureManifest, Scope
from threadmark.state import open_engine
from threadmark.state.tasks.tasks import list_tasks
from threadmark.workers.agents.memory_policy import MemoryPolicy
from threadmark.workers.tasks.journal_erasure import JournalCopies
from threadmark.workers.tasks.promotion import Promotions

HOME = Scope(tenant_id=TENANT, namespace=("assistants", "chat"))
REPLIES = [Reply("Here is what I found about the matter, and it is of no great use. " * 12)] * 30
#: Keeps next to nothing, so that there is something to promote.
SPARE = Policy(keep_last_turns=1, min_gain=0.0, summary_tokens=10, appendix_tokens=0)


async def promoted(stage: Stage, url: str) -> CompactionService:
    """A thread that was compacted until nothing but its last turn is left."""
    engine = open_engine(url, write=True)
    migrate(engine)
    engine.dispose()
    service = CompactionService(stage.store.database, now=stage.clock.now)
    stage.parts = replace(stage.parts, compactor=stage.compactor(service))
    await stage.store.thread("long")
    for number in range(8):
        await stage.play_out(await stage.say(f"Never pay more than ${number}00 for OPS-{number}.", thread_id="long"))
    ordered, _ = await service.compactions.begin(TENANT, "long", Order(key="once", policy=SPARE))
    await service.compactions.perform(ordered.compaction_id, holder="me")
    return service


async def deliver(stage: Stage) -> dict[str, Any]:
    """Do the task that was committed with the compaction."""
    tasks = await stage.store.read(lambda connection: list_tasks(connection, count_max=100))
    (task,) = [each for each in tasks if each.kind == PROMOTE]
    promotions = Promotions(
        database=stage.parts.database,
        journal=stage.parts.journal,
        registry=stage.registry,
        recollection=stage.parts.recollection,
        now=stage.parts.now,
    )
    return await promotions.deliver(task, None)  # type: ignore[arg-type]


async def held(counted: Counted) -> dict[str, Any]:
    """What memory holds, by its words."""
    return {each.text: each for _, each in await counted.memory.list(scope=HOME, count_max=1_000)}


async def test_what_the_ledger_calls_promoted_is_in_memory(store: Store, url: str, tmp_path: Path) -> None:
    """Word for word, with thread, entry and span, and trusted as far as who said it."""
    policy = MemoryPolicy(extract="off", recall=False, tools=())
    async with remembering(store, tmp_path, REPLIES, policy=policy) as (stage, counted):
        service = await promoted(stage, url)
        (done,) = await service.compactions.of_thread(TENANT, "long")
        rows = await service.drops.page(TENANT, done.compaction_id, DropFilter(statuses=("promoted",)), count_max=100)

        counts = await deliver(stage)
        memories = await held(counted)

        assert rows
        assert counts == {"kept": len(rows), "refused": 0}
        for drop in rows:
            kept = memories[drop.row.text]
            origin = kept.provenance[0].origin
            source = drop.row.sources[-1]
            assert (origin.thread_ref, origin.seq, origin.char_from, origin.char_to) == (
                "long",
                source.seq,
                source.start,
                source.end,
            )
            assert str(kept.trust) == str(drop.row.trust)


async def test_a_delivery_is_repeated_without_a_trace(store: Store, url: str, tmp_path: Path) -> None:
    """The task done twice, as after a death between memory and outbox, remembers once."""
    policy = MemoryPolicy(extract="off", recall=False, tools=())
    async with remembering(store, tmp_path, REPLIES, policy=policy) as (stage, counted):
        await promoted(stage, url)
        await deliver(stage)
        before = await held(counted)

        again = await deliver(stage)

        assert again == {"kept": 0, "refused": 0}
        assert await held(counted) == before


async def test_what_memory_erases_is_in_no_ledger_and_no_summary(store: Store, url: str, tmp_path: Path) -> None:
    """The journal, what compaction keeps of it, and memory: all lose the words, and every ledger still verifies."""
    policy = MemoryPolicy(extract="off", recall=False, tools=())
    async with remembering(store, tmp_path, REPLIES, policy=policy) as (stage, counted):
        service = await promoted(stage, url)
        await deliver(stage)
        words = next(text for text in await held(counted) if "OPS-3" in text or "$300" in text)
        kept = (await held(counted))[words]
        copies = JournalCopies(stage.store.database, service).erasure(TENANT)
        erasure_manifest = ErasureManifest(
            assertion_ids=frozenset({kept.assertion_id}),
            texts=frozenset({words}),
            origins=(kept.provenance[0].origin,),
            whole_thread=None,
            after=None,
        )

        await copies.erase(erasure_manifest)
        await copies.erase(erasure_manifest)

        for name in ("compaction_row", "compaction_segment", "compaction_promotion", "compaction_analysis"):
            table = METADATA.tables[name]
            stored = await store.read(lambda connection, table=table: connection.execute(select(table)).all())  # type: ignore[misc]
            assert words not in repr(stored)
        assert [check.damage for check in await service.verify_thread(TENANT, "long")] == [None]
        assert words not in str((await service.views.show(TENANT, "long")).rendered.parts)
