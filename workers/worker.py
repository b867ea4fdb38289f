"""A worker: claims runs and takes turns of them, many at a time.

It wakes for a doorbell, for the next due time, and at least every `sweep_s` to look for what nobody rang for: runs
that are due, runs whose worker died, and what came from outside for the runs it moves.
"""

import asyncio
import json
import logging
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from state import Claim, Failure, Held, claim, claim_run, give_back, new_id, next_due_us, own
from workers.breaks import blamed, rest_us
from workers.chores import Chores
from workers.desk import Desk
from workers.lease import Lease
from workers.pools import UPKEEP
from workers.pulse import Pulse
from workers.tidying import tidy
from workers.turn import Turn

__all__ = ["Pace", "Worker", "new_worker_id"]

_LOG = logging.getLogger("threadmark.worker")
_PURGE_EVERY_S = 30.0
#: How long a lease that had ended waits to hear what others hold by now; heartbeats wait with it (seconds).
LOST_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How many turns at once, how often to look, and how long a stop may take (seconds)."""

    turn_count_max: int = 64
    orphan_count_max: int = 16  #: orphans taken over in one sweep, so that a dead worker's load spreads
    sweep_s: float = 1.0
    probe_s: float = 0.25  #: how often to look for workers that died
    grace_s: float = 2.0


def new_worker_id(now_us: int) -> str:
    """A name that says where the worker runs; unique."""
    host = "".join(each if each.isalnum() else "-" for each in socket.gethostname())[:32]
    return f"{host}-{os.getpid()}-{new_id(now_us)[-12:]}"


class Worker:
    """Runs in the event loop of its process until `stop`."""

    def __init__(self, desk: Desk, lease: Lease, worker_id: str, pace: Pace, chores: Chores | None = None) -> None:
        self.worker_id = worker_id
        self.chores = chores or Chores(desk, lease, worker_id, {}, sweep_s=pace.sweep_s)
        self._desk = desk
        self._lease = lease
        self._pace = pace
        self._bell = asyncio.Event()
        self._stopping = False
        self._turns: dict[asyncio.Task[None], Turn] = {}
        self._routes = [route for agent in desk.registry for route in agent.routes]
        self._serving: asyncio.Task[None] | None = None
        self._sweeping = asyncio.Lock()  # a sweep that claims may fill the room that is left
        self._claiming: set[asyncio.Task[None]] = set()
        self._purge_due = 0.0
        self._listen_due = 0.0
        self._suspicious = False
        self._broken: dict[tuple[int, int], Failure] = {}  #: by run and fence: what its turn broke off with
        self._pulse = Pulse()

    async def start(self) -> None:
        """Take the lease, bury the dead, and begin to serve. Returns once the worker can claim."""
        agents = json.dumps({agent.name: agent.version for agent in self._desk.registry})
        loop = asyncio.get_running_loop()

        def lost() -> None:
            dropping = asyncio.run_coroutine_threadsafe(self._drop_lost(), loop)
            try:
                dropping.result(LOST_S)
            except Exception:
                # A loop that is held up, or a database that fails again: what may be somebody else's is nobody's here.
                _LOG.exception("what others hold could not be told; everything is let go")
                dropping.cancel()
                loop.call_soon_threadsafe(self.let_go)

        self._pulse.watch(loop)
        await UPKEEP.run(partial(self._lease.begin, agents, lost, self._pulse.counts))
        self._serving = asyncio.create_task(self._serve(), name="threadmark-worker")
        self.chores.start()

    def ring(self) -> None:
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
        """Something came from outside for these runs, or tasks."""
        for turn in self._turns.values():
            if turn.run_id in run_ids:
                turn.notice()
        self.chores.notice(run_ids)
        self.ring()

    def let_go(self) -> None:
        """The lease is lost: every thread and task belongs to somebody else now."""
        self.chores.let_go()
        for turn in self._turns.values():
            turn.release()

    @property
    def turn_count(self) -> int:
        """Turns being taken now."""
        return len(self._turns)

    async def stop(self) -> list[tuple[str, int]]:
        """Claim nothing more, give the turns their grace, abandon the rest at once, and give the lease back.

        Returns the runs that were let go, each with the number of its next turn: whoever hears of them goes on.
        """
        self._stopping = True
        self._bell.set()
        await self.chores.stop()
        if self._serving is not None:
            await self._serving
        if self._claiming:
            await asyncio.wait(self._claiming)
        if self._turns:
            await asyncio.wait(self._turns, timeout=self._pace.grace_s)
        released = [(turn.run_id, turn.attempt + 1) for turn in self._turns.values()]
        self.let_go()
        if self._turns:
            await asyncio.wait(self._turns, timeout=self._pace.grace_s + 5)
        await UPKEEP.run(self._lease.end)
        return released

    async def _serve(self) -> None:
        while not self._stopping:
            self._bell.clear()
            try:
                await self._bury_the_dead()
                await self._give_back_strays()
                await self._listen()
                claimed = await self._claim()
                wait_s = 0.0 if claimed else await self._until_next_s()
                await self._tidy()
            except Exception:
                # The database may be away for a while; the next sweep tries again, and nothing is lost meanwhile.
                _LOG.exception("the sweep failed; the next one comes in %s s", self._pace.sweep_s)
                self._suspicious = True
                wait_s = self._pace.sweep_s
            await self._wait(wait_s)

    async def _wait(self, wait_s: float) -> None:
        """Sleep until the bell, the time, or a death."""
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_s
        while (left_s := until - loop.time()) > 0:
            try:
                async with asyncio.timeout(min(left_s, self._pace.probe_s)):
                    await self._bell.wait()
            except TimeoutError:
                if left_s > self._pace.probe_s and await self._bury_the_dead():
                    return
            else:
                return

    async def _bury_the_dead(self) -> bool:
        dead = await UPKEEP.run(self._lease.bury_the_dead)
        if dead:
            _LOG.info("workers found dead: %s", ", ".join(dead))
            self.chores.ring()
        return bool(dead)

    async def _give_back_strays(self) -> None:
        """Let go of threads that are this worker's by the database and not by its own count.

        A turn that broke off (the database was away, a defect) leaves its thread owned by a worker that lives, and a
        claim whose answer was lost was never begun: no sweep of another worker would ever find either.
        """
        if not self._suspicious:
            return
        held = await self._held()
        if self._claiming:
            return  # what was just claimed is no stray
        active = {turn.run for turn in self._turns.values()}
        for stray in [each for each in held if each.run not in active]:
            await self._desk.database.write(self._returning(stray), repeatable=True)
        self._broken.clear()
        self._suspicious = False

    def _returning(self, stray: Held) -> Callable[[Connection], bool]:
        delay_us = round(self._pace.sweep_s * 1_000_000)
        failure = self._broken.get((stray.run, stray.fence))
        return partial(give_back, held=stray, delay_us=delay_us, failure=failure, back_off=rest_us)

    async def _listen(self) -> None:
        """Look for what came from outside for the turns that are being taken, and that no notice told of."""
        now = asyncio.get_running_loop().time()
        if not self._turns or now < self._listen_due:
            return
        self._listen_due = now + self._pace.sweep_s
        inboxes = {each.run: each.inbox for each in await self._held()}
        for turn in self._turns.values():
            turn.look(inboxes.get(turn.run))

    async def _drop_lost(self) -> None:
        """The lease had ended: let go of the threads that others have taken since, and of every task."""
        self.chores.let_go()
        held = {each.run: each.fence for each in await self._held()}
        for turn in self._turns.values():
            if held.get(turn.run) != turn.fence:
                turn.release()

    async def _held(self) -> list[Held]:
        return await self._desk.database.read(lambda connection: own(connection, self.worker_id))

    @property
    def _room(self) -> int:
        return self._pace.turn_count_max - len(self._turns) - len(self._claiming)

    async def _claim_run(self, run_id: str) -> None:
        try:
            claimed = await self._desk.database.write(
                lambda connection: claim_run(connection, self.worker_id, self._routes, run_id)
            )
        except Exception:
            # As in the sweep: whether the claim was committed may be unknown, and the next sweep sees to it.
            _LOG.exception("run %s could not be claimed", run_id)
            self._suspicious = True
            return
        if claimed is not None:
            self._pulse.claimed([claimed], orphan_count=0)
            self._take(claimed)

    async def _claim(self) -> bool:
        async with self._sweeping:
            room = self._room
            if room <= 0 or not self._lease.is_safe:
                return False
            claims = await self._desk.database.write(
                lambda connection: claim(
                    connection, self.worker_id, self._routes, room, orphan_count_max=self._pace.orphan_count_max
                )
            )
            self._pulse.claimed(claims, orphan_count=sum(each.was_orphan for each in claims))
            for each in claims:
                self._take(each)
        return bool(claims)

    def _take(self, claimed: Claim) -> None:
        agent = self._desk.registry.find(claimed.run.assistant)
        if agent is None:
            raise LookupError(f"claimed a run of {claimed.run.assistant!r}, which this worker does not have")
        turn = Turn(self._desk, claimed, agent, is_safe=lambda: self._lease.is_safe)
        task = asyncio.create_task(turn.take(), name=f"turn {claimed.run.run_id}")
        self._turns[task] = turn
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        turn = self._turns.pop(task)
        # A turn is never cancelled by its worker: one that was has broken off like any other.
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or error is not None:
            _LOG.error("turn of run %s broke off", turn.run_id, exc_info=error)
            self._suspicious = True
            if (failure := blamed(error)) is not None:
                self._broken[turn.run, turn.fence] = failure
        # The next run of the thread, or the next turn of a parked run, may be due already.
        self._bell.set()

    async def _until_next_s(self) -> float:
        due_us = await self._desk.database.read(next_due_us)
        if due_us is None or due_us == 0:
            return self._pace.sweep_s
        return min(self._pace.sweep_s, due_us / 1_000_000)

    async def _tidy(self) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._purge_due:
            return
        self._purge_due = now + _PURGE_EVERY_S
        await tidy(self._desk)
