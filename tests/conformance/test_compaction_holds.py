"""Who performs a compaction, and when another may: over both databases."""

from tests.conformance.compacting import Compacting, compacting, compaction_engine
from tests.conformance.store import real_now_us
from tests.support.factories import TENANT
from threadmark.compaction.store.holds import hold
from threadmark.state import expire, register

__all__ = ["compacting", "compaction_engine"]


async def test_a_hold_ends_with_the_lease_of_its_worker(compacting: Compacting) -> None:
    """Not before: a live worker keeps it; without a worker's name only time ends it."""
    store, compactions = compacting.store, compacting.service.compactions
    await compacting.thread()
    ordered, _ = await compactions.begin(TENANT, "thread-1", compacting.order())
    now_us = real_now_us()

    async def take(holder: str, worker_id: str | None) -> bool:
        taken = await store.write(
            lambda connection: hold(
                connection, ordered.compaction_id, holder, worker_id, now_us, now_us + 3_600 * 1_000_000
            )
        )
        return taken is not None

    await store.write(lambda connection: register(connection, "w1", 600.0, "{}"))
    assert await take("first", "w1")
    assert not await take("second", "w2")
    assert [each.compaction_id for each in await compactions.unfinished()] == []

    await store.write(lambda connection: expire(connection, ["w1"]))
    assert [each.compaction_id for each in await compactions.unfinished()] == [ordered.compaction_id]
    assert await take("third", None)
    assert not await take("fourth", None)
