"""A worker: claims runs and takes turns of them, many at a time.

It wakes for a notification, for the next due time, and at least every `sweep_s` to look for lost notifications: runs
that are due, runs whose worker died, and what came from outside for the runs it moves.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from threadmark.state import claim, claim_run, next_due_us
from threadmark.state.tasks.tasks import Task
from threadmark.workers.agents.agent import Registry
from threadmark.workers.fleet.active_turns import ActiveTurns
from threadmark.workers.fleet.dead_workers import DeathWatch
from threadmark.workers.fleet.housekeeping import Housekeeping
from threadmark.workers.fleet.lease import Lease
from threadmark.workers.fleet.pace import Pace
from threadmark.workers.fleet.strays import Strays
from threadmark.workers.fleet.task_runner import TaskRunner
from threadmark.workers.fleet.trial import Trials
from threadmark.workers.fleet.worker_stats import WorkerStats
from threadmark.workers.pools import UPKEEP
from threadmark.workers.supervisor import Loop, Supervisor, stale_after_s
from threadmark.workers.turn.turn import Turn
from threadmark.workers.turn.turn_parts import TurnParts

__all__ = ["Pace", "Worker"]

_LOG = logging.getLogger("threadmark.worker")
#: How long a lease that had ended waits to hear what others hold by now; heartbeats wait with it (seconds).
LOST_S = 2.0
#: How long a stop waits for the sweep and for claims that are on their way (seconds).
STOP_S = 5.0


class Worker:
    """Runs in the event loop of its process until `stop`."""

    def __init__(
        self,
        parts: TurnParts,
        registry: Registry,
        lease: Lease,
        worker_id: str,
        pace: Pace,
        task_runner: TaskRunner | None = None,
        supervisor: Supervisor | None = None,
        tidy: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Turns of the agents in `registry` are taken with `parts`. `tidy` is called now and then; None: never."""
        self.worker_id = worker_id
        self._supervisor = supervisor or Supervisor()
        self._deaths = DeathWatch(lease, self._supervisor, probe_s=pace.probe_s, on_death=self._found_dead)
        self.task_runner = task_runner or TaskRunner(
            parts.database, lease, worker_id, {}, sweep_s=pace.sweep_s, supervisor=self._supervisor
        )
        self._registry = registry
        self._database = parts.database
        self._lease = lease
        self._pace = pace
        self._bell = asyncio.Event()
        self._stopping = False
        self._routes = [route for agent in registry for route in agent.routes]
        self._loops: list[Loop] = []
        self._sweeping = asyncio.Lock()  # a sweep that claims may fill the room that is left
        self._claiming: set[asyncio.Task[None]] = set()
        self._trials = Trials(
            parts.database,
            lease,
            worker_id,
            self._is_idle,
            self.notify,
            routes=self._routes,
            kinds=self.task_runner.kinds,
            look_s=pace.sweep_s,
        )
        self.task_runner.wait_for(lambda: self._trials.allow_claims)
        self._housekeeping = Housekeeping(tidy, self._supervisor)
        self._announce_deaths: Callable[[], None] | None = None
        self._strays = Strays(parts.database, delay_s=pace.sweep_s)
        self._turns = ActiveTurns(parts, registry, lease, worker_id, self._strays, self._ended, listen_s=pace.sweep_s)
        self._stats = WorkerStats(loops=self._supervisor.reports)

    async def start(self) -> None:
        """Take the lease, reap dead workers, and begin to serve. Returns once the worker can claim."""
        agents = json.dumps({agent.name: agent.version for agent in self._registry})
        loop = asyncio.get_running_loop()

        def lost() -> None:
            dropping = asyncio.run_coroutine_threadsafe(self._drop_lost(), loop)
            try:
                dropping.result(LOST_S)
            except Exception:
                # A blocked loop, or a database that fails again: what another worker may hold must not go on here.
                _LOG.exception("cannot read what other workers hold; releasing every turn and task")
                dropping.cancel()
                loop.call_soon_threadsafe(self.let_go)

        self._stats.watch(loop)
        self._lease.report_to(self._supervisor, loop)
        await UPKEEP.run(partial(self._lease.begin, agents, lost, self._stats.counts))
        self._deaths.start()
        stale_s = stale_after_s(self._pace.sweep_s)
        self._loops.append(
            self._supervisor.start("sweep", self._serve, stale_s=stale_s, delay_s_max=self._pace.sweep_s)
        )
        self.task_runner.start()
        self._housekeeping.start()

    def announce_deaths_by(self, announce: Callable[[], None]) -> None:
        """Call this, too, when workers were found dead: any worker with room takes their runs, not only the finder."""
        self._announce_deaths = announce

    def notify(self) -> None:
        """There is a run to claim."""
        self._bell.set()

    async def take(self, run_id: str) -> bool:
        """Claim this run and begin its turn, if it is due and eligible; False when this worker has no room for it.

        Never raises: a run that could not be claimed is found by the sweep.
        """
        async with self._sweeping:
            if self._stopping or not self._lease.is_safe or self._room <= 0:
                return False
            claiming = asyncio.create_task(self._claim_run(run_id), name=f"claim {run_id}")
            self._claiming.add(claiming)
            claiming.add_done_callback(self._claiming.discard)
        # A claim that is on its way is never abandoned: the run would belong to a worker that does not know of it.
        await asyncio.shield(claiming)
        return True

    def notice(self, run_ids: tuple[str, ...]) -> None:
        """Something came from outside for these runs, or tasks; for none by name: there may be orphans of any."""
        if not run_ids:
            self._trials.look()
            self.task_runner.notify()
        self._turns.notice(run_ids)
        self.task_runner.notice(run_ids)
        self.notify()

    def let_go(self) -> None:
        """The lease is lost: every thread and task belongs to another worker now."""
        self.task_runner.let_go()
        self._turns.let_go()

    @property
    def turn_count(self) -> int:
        """Turns being taken now."""
        return len(self._turns)

    async def stop(self) -> list[tuple[str, int]]:
        """Claim nothing more, give the turns their grace, abandon the rest at once, and give the lease back.

        Returns the runs that were released, each with the number of its next turn, for the workers that go on.
        """
        # First: a sweep that sees the flag ends while others are still being stopped.
        self._supervisor.dismiss(*self._loops)
        self._stopping = True
        self._bell.set()
        # What waits for a database that is away would hold the stop up for as long as writers wait.
        self._database.hurry()
        await self.task_runner.stop()
        await self._deaths.stop()
        await self._housekeeping.stop()
        await self._supervisor.stop(*self._loops, patience_s=STOP_S)
        if self._claiming:
            await asyncio.wait(self._claiming, timeout=STOP_S)
        await self._turns.wait(self._pace.grace_s)
        released = self._turns.successors
        self.let_go()
        await self._turns.wait(self._pace.grace_s + 5)
        await UPKEEP.run(self._lease.end)
        return released

    async def _serve(self, loop: Loop) -> None:
        while not self._stopping:
            self._bell.clear()
            try:
                await self._release_strays()
                await self._turns.listen()
                claimed = await self._try_a_suspect() or await self._claim()
                wait_s = 0.0 if claimed else await self._until_next_s()
            except Exception:
                # A claim whose answer was lost may have been committed; the next round looks for it.
                self._strays.may_exist = True
                raise
            loop.completed()
            await self._wait(wait_s)

    async def _wait(self, wait_s: float) -> None:
        """Sleep until the bell, or the time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._bell.wait()

    def _found_dead(self) -> None:
        """What the dead held can be claimed."""
        self._trials.look()
        self.task_runner.notify()
        self.notify()
        if self._announce_deaths is not None:
            self._announce_deaths()

    async def _release_strays(self) -> None:
        if not self._strays.may_exist:
            return
        held = await self._turns.held()
        # What was just claimed is no stray.
        if not self._claiming:
            await self._strays.release(held, self._turns.runs)

    async def _drop_lost(self) -> None:
        """The lease had ended: let go of the threads that others have taken since, and of every task."""
        self.task_runner.let_go()
        await self._turns.drop_lost()

    @property
    def _room(self) -> int:
        if not self._trials.allow_claims:
            return 0
        return self._pace.turn_count_max - len(self._turns) - len(self._claiming)

    async def _claim_run(self, run_id: str) -> None:
        try:
            claimed = await self._database.write(
                lambda connection: claim_run(connection, self.worker_id, self._routes, run_id)
            )
        except Exception:
            # As in the sweep: whether the claim was committed may be unknown, and the next sweep finds out.
            _LOG.exception("run %s could not be claimed", run_id)
            self._strays.may_exist = True
            return
        if claimed is not None:
            self._stats.claimed([claimed], orphan_count=0)
            self._turns.begin(claimed)

    async def _claim(self) -> bool:
        async with self._sweeping:
            room = self._room
            if room <= 0 or not self._lease.is_safe:
                return False
            claims = await self._database.write(
                self._lease.sparing(
                    lambda connection: claim(
                        connection,
                        self.worker_id,
                        self._routes,
                        room,
                        orphan_count_max=self._pace.orphan_count_max,
                        with_suspects=False,
                    )
                )
            )
            self._stats.claimed(claims, orphan_count=sum(each.was_orphan for each in claims))
            for each in claims:
                self._turns.begin(each)
        return bool(claims)

    def _is_idle(self) -> bool:
        return not (self._turns or self._claiming or self.task_runner.is_busy)

    async def _try_a_suspect(self) -> bool:
        async with self._sweeping:
            if self._stopping or not self._lease.is_safe:
                return False
            claimed = await self._trials.claim()
            if claimed is None:
                return False
            if isinstance(claimed, Task):
                self._trials.begun(self.task_runner.begin(claimed, self._trials.ended))
                return True
            self._stats.claimed([claimed], orphan_count=1)
            self._trials.begun(self._turns.begin(claimed))
        return True

    def _ended(self, turn: Turn) -> None:
        self._trials.ended(turn)
        # The next run of the thread, or the next turn of a parked run, may be due already.
        self._bell.set()

    async def _until_next_s(self) -> float:
        due_us = await self._database.read(next_due_us)
        if due_us is None or due_us == 0:
            return self._pace.sweep_s
        return min(self._pace.sweep_s, due_us / 1_000_000)
