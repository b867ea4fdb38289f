"""Ends of runs share a batch with everybody's appends; each fails alone, and the round trips do not grow with them."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg._queries import MAX_CACHED_STATEMENT_LENGTH
from sqlalchemy import Connection, make_url, text

from tests.conformance.gate import Gate
from tests.conformance.store import ROUTES, Store
from tests.support.factories import TENANT, a_submission
from tests.support.waiting import wait_until
from threadmark.db.prepared import Prepared
from threadmark.state import (
    CancelAction,
    Claim,
    JournalWriter,
    LeaseLost,
    Overtaken,
    RunChanges,
    RunOutcome,
    RunSettled,
    RunStatus,
    ThreadStatus,
    TurnStarted,
    accept,
    cancel_runs,
    claim,
    get_run,
    statements,
)
from threadmark.state.runs import claim_statements
from threadmark.state.runs.run_bounds import RunBounds
from threadmark.state.tasks.task_bounds import check_background_jobs

RUN_COUNT = 6
SETTLES = RunChanges(ending=RunOutcome(status=RunStatus.SUCCESS, thread_status=ThreadStatus.IDLE))
Begun = tuple[Claim, JournalWriter]


async def together(store: Store, *writes: Callable[[], Awaitable[Any]]) -> list[Any]:
    """What each write of a holder came to; the writer finds them in one batch."""
    gate = Gate()
    busy = asyncio.create_task(store.database.write(gate, thread=0))
    await wait_until(gate.entered.is_set, description="the writer to be busy")
    tasks = [asyncio.ensure_future(write()) for write in writes]
    await asyncio.sleep(0)
    gate.opened.set()
    await busy
    return await asyncio.gather(*tasks, return_exceptions=True)


def settling(begun: Begun) -> Callable[[], Awaitable[None]]:
    """The end of a run, with its last entry."""
    claimed, writer = begun

    async def settle() -> None:
        writer.append(RunSettled(run_id=claimed.run.run_id, status="success"))
        await writer.flush(SETTLES)

    return settle


def stepping(begun: Begun) -> Callable[[], Awaitable[None]]:
    """One more entry."""

    async def step() -> None:
        begun[1].append(TurnStarted(worker_id="w", attempt=2))
        await begun[1].flush()

    return step


async def test_runs_end_in_one_batch_and_each_fails_alone(store: Store) -> None:
    """A stale holder and a run that has to roll back are refused and leave nothing; their neighbours end."""
    begun = [await store.begun(f"run {number}") for number in range(RUN_COUNT)]
    ended, rolled_back, stale, waited_for, stepped = begun[0], begun[1], begun[2], begun[3], begun[4]
    number, run_id = rolled_back[0].thread.number, rolled_back[0].run.run_id
    await store.write(
        lambda connection: cancel_runs(connection, number, CancelAction.ROLLBACK, store.now_us(), run_ids=[run_id])
    )
    stale_hand = JournalWriter(store.database, _before(stale[0]), run=stale[0].run.number, now_us=store.now_us)
    later = await store.accept(thread_id=waited_for[0].thread.thread_id)

    outcomes = await together(
        store,
        settling(ended),
        settling(rolled_back),
        settling((stale[0], stale_hand)),
        settling(waited_for),
        stepping(stepped),
    )

    assert [type(each) for each in outcomes] == [type(None), Overtaken, LeaseLost, type(None), type(None)]
    entries = [len(await store.entries(claimed.thread.number)) for claimed, _ in begun]
    assert entries == [3, 2, 2, 3, 3, 2]
    statuses = [(await store.run(claimed.run)).status for claimed, _ in begun]
    done, going = RunStatus.SUCCESS, RunStatus.RUNNING
    assert statuses == [done, going, going, done, going, going]
    threads = [await store.seen(claimed.thread) for claimed, _ in begun]
    assert [each.owner is None for each in threads] == [True, False, False, True, False, False]
    assert threads[0].status is ThreadStatus.IDLE
    # Another run of it waits: the thread is not idle between the two.
    assert threads[3].status is ThreadStatus.BUSY
    assert [each.run.run_id for each in await store.claim()] == [later.run_id]
    for claimed, _ in begun:
        assert await store.journal.verify(claimed.thread) == []


def _before(claimed: Claim) -> Any:
    """The thread as a holder has it whose lease was taken from it."""
    return type(claimed.thread)(
        **{name: getattr(claimed.thread, name) for name in claimed.thread.__slots__}
        | {"fence": claimed.thread.fence - 1}
    )


async def test_an_append_waits_for_an_earlier_unit_of_its_own_thread(store: Store) -> None:
    """Appends go first in a batch, but the order of one thread's writes stays."""
    first, second = await store.begun("one"), await store.begun("two")
    seen: dict[int, RunStatus] = {}

    def looking(begun: Begun) -> Callable[[], Awaitable[None]]:
        run, thread = begun[0].run, begun[0].thread.number

        def unit(connection: Connection) -> None:
            seen[thread] = get_run(connection, run.tenant_id, run.run_id).status

        return lambda: store.database.write(unit, thread=thread)

    await together(store, looking(first), settling(first), settling(second), looking(second))

    assert seen == {first[0].thread.number: RunStatus.RUNNING, second[0].thread.number: RunStatus.SUCCESS}


async def test_the_end_of_many_runs_is_one_commit(store: Store) -> None:
    """Their last entries, their runs and their threads travel together."""
    begun = [await store.begun(f"run {number}") for number in range(RUN_COUNT)]
    before = store.database.commit_count

    outcomes = await together(store, *(settling(each) for each in begun))

    assert outcomes == [None] * RUN_COUNT
    # One more for the gate, which kept the writer busy.
    assert store.database.commit_count - before == 2


class Statements:
    """How many statements the driver was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        execute = psycopg.Cursor.execute

        def counted(cursor: Any, *arguments: Any, **options: Any) -> Any:
            self.count += 1
            return execute(cursor, *arguments, **options)

        monkeypatch.setattr(psycopg.Cursor, "execute", counted)

    async def of(self, write: Awaitable[Any]) -> int:
        """How many the write took."""
        before = self.count
        await write
        return self.count - before


@pytest.fixture
async def postgresql_store(postgresql_state_url: str) -> Any:
    """A store on PostgreSQL alone: the other database has no round trips."""
    store = Store.open(postgresql_state_url)
    yield store
    await store.database.close()


async def test_holders_do_not_wait_behind_what_comes_from_everywhere_else(postgresql_store: Store) -> None:
    """A unit that is slow, or that waits for a lock, keeps no turn from its next step."""
    store = postgresql_store
    begun = await store.begun()
    gate = Gate()
    busy = asyncio.create_task(store.database.write(gate))
    await wait_until(gate.entered.is_set, description="the other writer to be busy")

    await settling(begun)()

    assert not busy.done()
    gate.opened.set()
    await busy


async def test_what_a_turn_writes_takes_few_statements(
    postgresql_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One to accept a run on a new thread, one to claim it, one for an append; and two for the ends of any number of
    runs in a batch: the locks, and what moves.
    """
    store = postgresql_store
    for _ in range(4):
        await store.begun("each writer has its connection")
    spoken = Statements(monkeypatch)

    assert await spoken.of(store.accept("hello")) == 1
    assert await spoken.of(store.claim()) == 1
    claimed, writer = await store.begun()
    writer.append(TurnStarted(worker_id="w", attempt=2))
    assert await spoken.of(writer.flush()) == 1
    assert await spoken.of(settling((claimed, writer))()) == 2
    many = [await store.begun(f"run {number}") for number in range(4 * RUN_COUNT)]
    before = spoken.count
    assert await together(store, *(settling(each) for each in many)) == [None] * len(many)
    assert spoken.count - before == 2


def test_the_driver_keeps_every_statement_of_a_turn() -> None:
    """Its cache has a bound of 4,096 characters; a longer one would be taken apart again at every turn."""
    dialect = make_url("postgresql+psycopg://").get_dialect()()
    for name, statement in [*vars(claim_statements).items(), *vars(statements).items()]:
        if isinstance(statement, Prepared):
            assert len(statement.text(dialect)) <= MAX_CACHED_STATEMENT_LENGTH, name


def test_statuses_that_an_index_names_are_written_into_the_statements() -> None:
    """A bound one would take the index away from the plan that PostgreSQL keeps: every claim would read the table."""
    dialect = make_url("postgresql+psycopg://").get_dialect()()
    claim, accept = claim_statements.CLAIM.text(dialect), statements.INSERT_RUN.text(dialect)

    assert "run.status = 'pending'" in claim
    assert "run.status = 'running'" in claim
    assert "own.status = 'pending'" in accept
    assert "head.status = 'pending'" in accept


async def test_no_bound_is_counted_by_reading_a_whole_table(postgresql_store: Store) -> None:
    """What a tenant keeps waiting is looked up at every run that is accepted; its index has nothing else in it."""
    store, tasks = postgresql_store, ("compact_many", "compact_thread")
    await settling(await store.begun())()
    bounds = RunBounds(scheduled_runs=9, open_waits=9)
    thread = await store.thread()

    def scans(connection: Connection) -> int:
        found = text("SELECT sum(seq_scan) FROM pg_stat_xact_user_tables WHERE relname IN ('run', 'wait', 'task')")
        return int(connection.execute(found).scalar_one())

    def accepted(connection: Connection, thread_id: str | None) -> int:
        before = scans(connection)
        accept(connection, a_submission(thread_id=thread_id, delay_us=1, bounds=bounds), store.now_us())
        check_background_jobs(connection, TENANT, tasks, 9)
        return scans(connection) - before

    assert [await store.write(partial(accepted, thread_id=each)) for each in (None, thread.thread_id)] == [0, 0]


async def test_no_claim_reads_a_whole_table(postgresql_store: Store) -> None:
    """Not even with the plans of the first minute, which were made while the tables were empty."""
    store = postgresql_store
    for _ in range(12):
        await settling(await store.begun())()
    await store.accept("hello")

    def scans(connection: Connection) -> int:
        found = text(
            "SELECT coalesce(sum(seq_scan), 0) FROM pg_stat_xact_user_tables WHERE relname IN ('run', 'thread')"
        )
        return int(connection.execute(found).scalar_one())

    def claimed(connection: Connection) -> tuple[int, int]:
        before = scans(connection)
        return len(claim(connection, "worker-1", ROUTES, 100)), scans(connection) - before

    assert [await store.write(claimed) for _ in range(2)] == [(1, 0), (0, 0)]
