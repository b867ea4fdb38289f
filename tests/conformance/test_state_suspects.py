"""Suspects: runs at which workers died again and again are claimed one at a time, and never beside others."""

from functools import partial

from sqlalchemy import Connection

from tests.conformance.store import ROUTES, Store
from tests.support.factories import replied
from threadmark.state import Claim, Run, claim, claim_suspect, look_for_suspects
from threadmark.state.runs.claim_statements import SUSPECT_DEATH_COUNT
from threadmark.state.runs.worker_leases import register

LEASE_S = 600.0


async def _after_deaths(store: Store, count: int) -> list[Run]:
    """Two runs that so many workers died at together."""
    runs = [await store.accept("killer"), await store.accept("innocent")]
    for number in range(count + 1):
        await store.claim(f"dead-{number}")
        await store.bury_all()
    return runs


async def _ordinary(store: Store, worker_id: str) -> list[str]:
    claims = await store.database.write(
        lambda connection: claim(connection, worker_id, ROUTES, 10, with_suspects=False)
    )
    return [each.run.run_id for each in claims]


async def _suspect(store: Store, worker_id: str) -> Claim | None:
    """What a worker with a live lease gets that claims a suspect."""

    def claiming(connection: Connection) -> Claim | None:
        register(connection, worker_id, LEASE_S, "{}")
        return claim_suspect(connection, worker_id, ROUTES)

    return await store.database.write(claiming)


async def test_a_run_that_few_workers_died_at_is_no_suspect(store: Store) -> None:
    """Workers die of much: until it has happened again and again everything is claimed as before."""
    runs = await _after_deaths(store, SUSPECT_DEATH_COUNT - 1)

    assert await _suspect(store, "worker-1") is None
    assert await _ordinary(store, "worker-1") == [each.run_id for each in runs]


async def test_suspects_are_claimed_one_at_a_time(store: Store) -> None:
    """An ordinary claim leaves them; each is one claim of its own, and counts the death that it was left by."""
    runs = await _after_deaths(store, SUSPECT_DEATH_COUNT)

    assert await _ordinary(store, "worker-1") == []
    first = await _suspect(store, "worker-1")
    second = await _suspect(store, "worker-2")
    third = await _suspect(store, "worker-3")

    assert first is not None
    assert second is not None
    assert third is None
    assert [each.run.run_id for each in (first, second)] == [each.run_id for each in runs]
    assert (first.was_orphan, first.run.orphaned) == (True, SUSPECT_DEATH_COUNT + 1)


async def test_progress_clears_a_suspect(store: Store) -> None:
    """It has got further since the last death: it is claimed as any other orphan, and counted anew."""
    await _after_deaths(store, SUSPECT_DEATH_COUNT)
    tried = await _suspect(store, "worker-1")
    assert tried is not None
    await store.put(store.writer(tried), replied())
    await store.bury_all()

    claims = await store.database.write(
        lambda connection: claim(connection, "worker-2", ROUTES, 10, with_suspects=False)
    )

    assert [(each.run.run_id, each.run.orphaned) for each in claims] == [(tried.run.run_id, 1)]


async def test_the_worker_that_holds_least_is_the_one_to_become_free(store: Store) -> None:
    """Exactly one of those that live; and none where nothing waits."""
    busy = await store.accept("elsewhere")

    async def look(worker_id: str) -> tuple[bool, bool]:
        return await store.database.read(lambda connection: look_for_suspects(connection, worker_id, ROUTES))

    assert await look("worker-1") == (False, True)
    await store.claim("dead-0")
    await store.bury_all()
    for number in range(1, SUSPECT_DEATH_COUNT + 1):
        await store.claim(f"dead-{number}")
        await store.bury_all()
    for worker_id in ("worker-1", "worker-2"):
        await store.database.write(partial(register, worker_id=worker_id, ttl_s=LEASE_S, agents="{}"))
    other = await store.accept("beside")
    assert await _ordinary(store, "worker-1") == [other.run_id]

    assert await look("worker-1") == (True, False)
    assert await look("worker-2") == (True, True)
    assert busy.run_id != other.run_id
