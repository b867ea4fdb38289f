"""The turns that a worker is taking, and what the database says of their threads."""

import asyncio
import logging
from collections.abc import Callable, Collection
from functools import partial

from threadmark.state import Claim, Held, own
from threadmark.workers.agents.agent import Registry
from threadmark.workers.fleet.lease import Lease
from threadmark.workers.fleet.strays import Strays
from threadmark.workers.turn.turn import Turn
from threadmark.workers.turn.turn_failures import blamed
from threadmark.workers.turn.turn_parts import TurnParts

__all__ = ["ActiveTurns"]

_LOG = logging.getLogger("threadmark.worker")


class ActiveTurns:
    """Of one worker. A turn that breaks off is reported to `strays`; `on_end` follows each."""

    def __init__(
        self,
        parts: TurnParts,
        registry: Registry,
        lease: Lease,
        worker_id: str,
        strays: Strays,
        on_end: Callable[[Turn], None],
        *,
        listen_s: float,
    ) -> None:
        """Turns of the agents in `registry` are taken with `parts`."""
        self._parts = parts
        self._registry = registry
        self._lease = lease
        self._worker_id = worker_id
        self._strays = strays
        self._on_end = on_end
        self._listen_s = listen_s
        self._listen_due = 0.0
        self._turns: dict[asyncio.Task[None], Turn] = {}

    def __len__(self) -> int:
        return len(self._turns)

    @property
    def runs(self) -> set[int]:
        """The numbers of their runs."""
        return {turn.run for turn in self._turns.values()}

    @property
    def successors(self) -> list[tuple[str, int]]:
        """Their runs, each with the number of its next turn."""
        return [(turn.run_id, turn.attempt + 1) for turn in self._turns.values()]

    def begin(self, claimed: Claim) -> Turn:
        """Begin the turn of a run that was claimed for this worker."""
        agent = self._registry.find(claimed.run.assistant)
        if agent is None:
            raise LookupError(f"claimed a run of {claimed.run.assistant!r}, which this worker does not have")
        turn = Turn(self._parts, claimed, agent, is_safe=lambda: self._lease.is_safe)
        task = asyncio.create_task(turn.take(), name=f"turn {claimed.run.run_id}")
        self._turns[task] = turn
        task.add_done_callback(self._ended)
        return turn

    def notice(self, run_ids: Collection[str]) -> None:
        """Something came from outside for these runs."""
        for turn in self._turns.values():
            if turn.run_id in run_ids:
                turn.notice()

    async def listen(self) -> None:
        """Look now and then for what came from outside for the turns, and whose notice was lost."""
        now = asyncio.get_running_loop().time()
        if not self._turns or now < self._listen_due:
            return
        self._listen_due = now + self._listen_s
        inboxes = {each.run: each.inbox for each in await self.held()}
        for turn in self._turns.values():
            turn.look(inboxes.get(turn.run))

    async def drop_lost(self) -> None:
        """Let go of the threads that others have taken."""
        held = {each.run: each.fence for each in await self.held()}
        for turn in self._turns.values():
            if held.get(turn.run) != turn.fence:
                turn.release()

    def let_go(self) -> None:
        """Every thread belongs to another worker now, or is to."""
        for turn in self._turns.values():
            turn.release()

    async def wait(self, patience_s: float) -> None:
        """Wait until all have ended, but not for longer than this (seconds)."""
        if self._turns:
            await asyncio.wait(self._turns, timeout=patience_s)

    async def held(self) -> list[Held]:
        """The threads that the worker holds, according to the database."""
        return await self._parts.database.read(partial(own, worker_id=self._worker_id))

    def _ended(self, task: asyncio.Task[None]) -> None:
        turn = self._turns.pop(task)
        # A turn is never cancelled by its worker: one that was has broken off like any other.
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or error is not None:
            _LOG.error("turn of run %s broke off", turn.run_id, exc_info=error)
            self._strays.broke_off(turn.run, turn.fence, blamed(error))
        self._on_end(turn)
