"""What operators see of the fleet: who serves what, what nobody can run, what is counted, and how late claims are."""

from sqlalchemy import Connection

from tests.conformance.store import Store
from threadmark.state import (
    RATE_WINDOW_S,
    ParkReason,
    RunChanges,
    RunOutcome,
    RunStatus,
    ThreadStatus,
    claim_lag_s,
    heartbeat,
    list_workers,
    register,
    served_routes,
    unserved_routes,
)

HOUR_US = 3_600_000_000


async def test_a_live_worker_serves_its_agents_by_name_and_by_version(store: Store) -> None:
    """One whose lease has ended serves nothing."""

    def unit(connection: Connection) -> None:
        register(connection, "alive", 60.0, '{"chat": "2"}')
        register(connection, "dead", -1.0, '{"other": "1"}')

    await store.write(unit)

    assert await store.read(served_routes) == {"chat", "chat@2"}


async def test_runs_that_nobody_can_run_are_named_by_their_route(store: Store) -> None:
    """Pending ones, and running ones whose worker died and left nobody that could take them up."""
    await store.accept("one", route="chat@1")
    await store.claim(routes=["chat@1"])
    await store.accept("two", route="chat@2")
    await store.accept("three", route="chat@3")
    await store.bury_all()
    await store.write(lambda connection: register(connection, "alive", 60.0, '{"chat": "3"}'))

    assert await store.read(unserved_routes) == ["chat@1", "chat@2"]


async def test_a_heartbeat_reports_the_counts_of_its_worker(store: Store) -> None:
    """Nothing at first; then what the last heartbeat said."""
    await store.register()
    (seen,) = await store.read(list_workers)
    assert (seen.claim_count, seen.orphan_count, seen.recent_claim_count, seen.loop_lag_s) == (0, 0, 0, 0.0)
    counts = {"claim_count": 7, "orphan_count": 2, "recent_claim_count": 3, "loop_lag_us": 250_000}

    await store.write(lambda connection: heartbeat(connection, "worker-1", 60.0, counts))

    (seen,) = await store.read(list_workers)
    assert (seen.claim_count, seen.orphan_count, seen.recent_claim_count, seen.loop_lag_s) == (7, 2, 3, 0.25)
    assert RATE_WINDOW_S > 0


async def test_only_what_waits_for_nothing_but_a_worker_is_late(store: Store) -> None:
    """Not what is delayed, nor parked, nor behind an earlier run of its thread, nor running."""
    assert await store.read(claim_lag_s) == 0
    store.now_us = lambda now_us=store.now_us: now_us() - HOUR_US  # type: ignore[misc]
    first = await store.accept("one")
    assert 3_600 <= await store.read(claim_lag_s) < 3_700
    _, writer = await store.hold(first)
    await store.accept("behind", thread_id=first.thread_id)
    assert await store.read(claim_lag_s) == 0

    far = RunOutcome(
        status=RunStatus.PENDING,
        thread_status=ThreadStatus.BUSY,
        parked=ParkReason.BACKOFF,
        due_at_us=store.now_us() + 3 * HOUR_US,
    )
    await store.put(writer, move=RunChanges(ending=far))
    await store.accept("delayed", delay_us=3 * HOUR_US)

    assert await store.read(claim_lag_s) == 0


async def test_the_orphans_among_the_claims_are_counted(store: Store) -> None:
    """A worker counts what it took over from the dead."""
    await store.accept("orphan")
    await store.claim()
    await store.bury_all()
    await store.accept("due")

    claims = await store.claim("worker-2")

    assert [(each.run.request.messages[0].content, each.was_orphan) for each in claims] == [
        ("orphan", True),
        ("due", False),
    ]


async def test_a_lease_that_ended_is_not_renewed(store: Store) -> None:
    """A worker that froze past its lease learns that others may have its threads, also before it is expired."""
    await store.write(lambda connection: register(connection, "worker-1", -1.0, "{}"))

    assert not await store.write(lambda connection: heartbeat(connection, "worker-1", 60.0))

    await store.write(lambda connection: register(connection, "worker-1", 60.0, "{}"))
    assert await store.write(lambda connection: heartbeat(connection, "worker-1", 60.0))
