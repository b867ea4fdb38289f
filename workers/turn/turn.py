"""A turn: one worker's uninterrupted stretch of a run, under one lease.

    read and fold → next action → (flush, perform, note) → … → settle or park

Whatever starts an effect waits until everything noted is on disk; nothing else does. Repeating a turn from any point
is safe: recorded steps are in the fold, so the next action is the one after them.
"""

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, assert_never

from threadmark.state import (
    Claim,
    Entry,
    LeaseLost,
    Overtaken,
    ParkReason,
    RolledBack,
    RunOutcome,
    RunSettled,
    RunStatus,
    StepKey,
    ThreadStatus,
    WaitSuperseded,
    read_inbox,
)
from threadmark.state.pools import act_for
from threadmark.workers.agents.agent import ChatAgent
from threadmark.workers.fleet.services import Services
from threadmark.workers.tasks.follow_up_tasks import tasks_after
from threadmark.workers.turn.abandonment import abandon
from threadmark.workers.turn.action import CallModel, Note, Park, Perform, Recall, RollBack, Settle, next_action
from threadmark.workers.turn.memory_recall import perform_recall
from threadmark.workers.turn.prompt_view import PromptView
from threadmark.workers.turn.step_execution import ModelCall, call_tool
from threadmark.workers.turn.step_waiter import Running, StepWaiter
from threadmark.workers.turn.turn_journal import TurnJournal
from threadmark.workers.turn.turn_start import begin, fold_answers, fork_at

__all__ = ["ACTION_COUNT_MAX", "Turn"]

#: More actions than any budget allows: a loop that reaches it is a bug, and ends as one.
ACTION_COUNT_MAX = 1_000_000
_LOG = logging.getLogger("threadmark.turn")
_Step = Coroutine[Any, Any, Sequence[Entry]]


class Turn:
    """Takes one turn of a claimed run."""

    def __init__(
        self, services: Services, claim: Claim, agent: ChatAgent, *, is_safe: Callable[[], bool] = lambda: True
    ) -> None:
        """`is_safe` says whether the worker's lease holds for long enough that a step may start."""
        self._services = services
        self._is_safe = is_safe
        self._claim = claim
        self._agent = agent
        self._run = claim.run
        self._prompt_view = PromptView(services, claim, agent)
        self._inbox_seen = self._inbox_heard = claim.thread.inbox
        self._noticed = False
        self._begun: set[StepKey] = set()
        self._released = False
        self._step_ended = False
        #: Whether a step of this turn has ended and is on disk: nothing before it can have been what kills workers.
        self.has_progressed = False
        self._waiter = StepWaiter()

    @property
    def thread(self) -> int:
        """Number of the thread that this turn holds."""
        return self._claim.thread.number

    @property
    def run(self) -> int:
        """Number of the run that this turn moves."""
        return self._claim.run.number

    @property
    def fence(self) -> int:
        """The number of the lease under which this turn is taken."""
        return self._claim.thread.fence

    @property
    def attempt(self) -> int:
        """Which turn of the run this is, from 1."""
        return self._claim.run.attempts

    @property
    def run_id(self) -> str:
        """The run that this turn moves."""
        return self._run.run_id

    def notice(self) -> None:
        """Something came from outside: look into the inbox now, even in the middle of an effect."""
        self._noticed = True
        self._waiter.wake()

    def look(self, inbox: int | None) -> None:
        """A sweep found the inbox counter at `inbox` (None: the thread is not held any more): take notice of news."""
        if inbox is None or inbox > max(self._inbox_seen, self._inbox_heard):
            self._inbox_heard = self._inbox_heard if inbox is None else inbox
            self.notice()

    def release(self) -> None:
        """Let the thread go at once, and abandon the effect that runs."""
        self._released = True
        self._waiter.wake()

    async def take(self) -> None:
        """Move the run until it settles or parks, or until this worker lets go."""
        # A request may have rung: a turn is not the work of its request, and waits for nobody's.
        act_for(None)
        try:
            journal = await begin(self._services, self._claim, self._agent)
            await self._move(journal)
            journal.keep()
        except LeaseLost as lost:
            _LOG.info("turn given up: %s", lost)
        finally:
            self._waiter.close()
            self._services.feed.ended(self._run.tenant_id, self.run_id)

    async def _move(self, journal: TurnJournal) -> None:
        for _ in range(ACTION_COUNT_MAX):
            action = next_action(
                journal.state,
                self._agent,
                self._run,
                fence=journal.fence,
                now_us=self._services.now_us(),
                begun=self._begun,
            )
            match action:
                case Note(entries):
                    # Not an intent either: one that nobody acts on would be a doubt for whoever comes next.
                    for entry in entries if self._may_start() else ():
                        journal.stage(entry)
                case Recall() | CallModel() | Perform():
                    if await self._is_ready(journal):
                        await self._perform(journal, action)
                case Park():
                    return await self._park(journal, action)
                case Settle():
                    return await self._settle(journal, action)
                case RollBack():
                    return await self._roll_back(journal)
                case other:
                    assert_never(other)
            if self._released:
                return await self._let_go(journal)
        raise RuntimeError(f"run {self.run_id} did not end within {ACTION_COUNT_MAX} actions")

    async def _is_ready(self, journal: TurnJournal) -> bool:
        """Put everything on disk; False when what is next may not start.

        Something came from outside, and what is next has to be chosen again; or the lease was not renewed in time.
        """
        await journal.flush()
        self.has_progressed = self._step_ended
        if await self._look(journal):
            return False
        return self._may_start()

    def _may_start(self) -> bool:
        """Whether the lease holds for long enough; if not, the thread is let go, and whoever takes it goes on."""
        if not self._is_safe():
            _LOG.warning("run %s is let go: the worker's lease is not safe any more", self.run_id)
            self._released = True
        return not self._released

    async def _perform(self, journal: TurnJournal, action: Recall | CallModel | Perform) -> None:
        match action:
            case Recall():
                step = perform_recall(self._services, self._claim, self._agent, action)
                await self._finish_each(journal, {self._waiter.begin(step)})
            case CallModel():
                await self._call_model(journal, action)
            case Perform():
                await self._call_tools(journal, action)

    async def _call_model(self, journal: TurnJournal, action: CallModel) -> None:
        if not self._prompt_view.refresh(journal):
            loading = self._waiter.begin(self._prompt_view.load(journal, action))
            if not await self._finish_each(journal, {loading}):
                return
            # Pieces of the reply are held back behind an entry that is not on disk.
            await journal.flush()
        call = ModelCall(self._services, self._agent, journal, action, self._prompt_view.prompt)
        running = {self._waiter.begin(call.perform())}
        if not await self._finish_each(journal, running) and self._run.cancel:
            for entry in call.cut_short():
                journal.stage(entry)

    async def _call_tools(self, journal: TurnJournal, action: Perform) -> None:
        steps: list[_Step] = []
        for call in action.calls:
            tool = self._agent.tool(call.call.name)
            if tool is not None:
                self._begun.add(call.step_key)
                steps.append(call_tool(self._services, self._claim, self._agent, tool, call, journal))
        await self._finish_each(journal, {self._waiter.begin(step) for step in steps})

    async def _finish_each(self, journal: TurnJournal, running: set[Running]) -> bool:
        """Note what each step came to as it ends, journaled each; False when the turn was stopped before the last."""
        try:
            while running:
                done = await self._waiter.next_ended(running, self._time_left_s(journal))
                running = running - done
                for task in done:
                    for entry in task.result():
                        journal.stage(entry)
                    self._step_ended = True
                if not done and await self._has_to_stop(journal):
                    return False
                # The last result rides with whatever comes next; the others must not wait for their slowest sibling.
                if done and running:
                    await journal.flush()
                    await self._look(journal)
            return True
        finally:
            await abandon(running)

    def _time_left_s(self, journal: TurnJournal) -> float:
        execution = journal.state.execution
        if execution is None:
            return self._agent.limits.wall_time_s_max
        used_s = (self._services.now_us() - execution.run_started_at_us) / 1_000_000
        return max(0.0, self._agent.limits.wall_time_s_max - used_s)

    async def _has_to_stop(self, journal: TurnJournal) -> bool:
        if self._released:
            return True
        self._waiter.came = False
        await self._look(journal)
        return self._run.cancel is not None or self._time_left_s(journal) <= 0

    async def _look(self, journal: TurnJournal) -> bool:
        """Fold in what came from outside, if the inbox counter or a notice says that something did; whether one did."""
        if not self._noticed and journal.inbox == self._inbox_seen:
            return False
        self._noticed, self._inbox_seen = False, journal.inbox
        inbox = await self._services.database.read(
            lambda connection: read_inbox(connection, self.thread, self._claim.run.number)
        )
        if inbox is None:
            raise LeaseLost(self._claim.thread.thread_id, journal.fence)
        self._run = inbox.run
        fold_answers(journal, inbox.answers)
        return True

    async def _settle(self, journal: TurnJournal, action: Settle) -> None:
        journal.stage(
            RunSettled(
                run_id=self._run.run_id,
                status=action.status,
                reason=action.reason,
                failure=action.failure,
                paused_at=action.paused_at,
            )
        )
        ending = RunOutcome(
            status=action.status,
            thread_status=action.thread_status,
            reason=action.reason,
            failure=action.failure,
        )
        for task in tasks_after(self._agent, self._run, self._services.now_us()):
            journal.order(task)
        try:
            await journal.flush(ending)
        except Overtaken:
            await self._roll_back(journal)

    async def _park(self, journal: TurnJournal, action: Park) -> None:
        doubt = action.reason is ParkReason.IN_DOUBT
        await journal.flush(
            RunOutcome(
                status=RunStatus.PENDING,
                thread_status=ThreadStatus.INTERRUPTED if doubt else ThreadStatus.BUSY,
                parked=action.reason,
                due_at_us=action.due_at_us,
            )
        )

    async def _let_go(self, journal: TurnJournal) -> None:
        await journal.flush(RunOutcome(status=RunStatus.PENDING, thread_status=ThreadStatus.BUSY))

    async def _roll_back(self, journal: TurnJournal) -> None:
        for call in journal.state.open_waits:
            if call.wait_id is not None:
                journal.stage(WaitSuperseded(wait_id=call.wait_id, step_key=call.step_key))
        await journal.flush()
        journal.fork(*await fork_at(self._services, self._claim, journal.first_seq - 1))
        journal.stage(RolledBack(run_id=self._run.run_id))
        await journal.flush(
            RunOutcome(
                status=RunStatus.INTERRUPTED,
                thread_status=ThreadStatus.IDLE,
                reason="rolled back",
                hidden=True,
            )
        )
