"""A turn: one worker's uninterrupted stretch of a run, under one lease.

    read and fold → next action → (flush, perform, note) → … → settle or park

Whatever starts an effect waits until everything noted is on disk; nothing else does. Repeating a turn from any point
is safe: recorded steps are in the fold, so the next action is the one after them.
"""

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, assert_never

from threadmark.db.execution.pools import act_for
from threadmark.state import (
    Call,
    Claim,
    Entry,
    JournalWriter,
    LeaseLost,
    Overtaken,
    RolledBack,
    RunOutcome,
    RunSettled,
    RunStatus,
    StepKey,
    WaitSuperseded,
    read_inbox,
)
from threadmark.workers.agents.agent import ChatAgent
from threadmark.workers.agents.tools import Tool
from threadmark.workers.tasks.follow_up_tasks import tasks_after
from threadmark.workers.turn.action import CallModel, Note, Park, Perform, Recall, RollBack, Settle, next_action
from threadmark.workers.turn.memory_recall import perform_recall
from threadmark.workers.turn.prompt_view import PromptView
from threadmark.workers.turn.step_execution import ModelCall, call_tool, context_of
from threadmark.workers.turn.step_waiter import Running, StepWaiter, abandon
from threadmark.workers.turn.turn_journal import TurnJournal
from threadmark.workers.turn.turn_parts import TurnParts
from threadmark.workers.turn.turn_start import begin, fold_answers, fork_at

__all__ = ["ACTION_COUNT_MAX", "Turn"]

#: More actions than any budget allows: a loop that reaches it is a bug, and ends as one.
ACTION_COUNT_MAX = 1_000_000
_LOG = logging.getLogger("threadmark.turn")
_Step = Coroutine[Any, Any, Sequence[Entry]]


class Turn:
    """Takes one turn of a claimed run."""

    def __init__(
        self, parts: TurnParts, claim: Claim, agent: ChatAgent, *, is_safe: Callable[[], bool] = lambda: True
    ) -> None:
        """`is_safe` says whether the worker's lease holds for long enough that a step may start."""
        self._parts = parts
        self._is_safe = is_safe
        self._claim = claim
        self._agent = agent
        self._run = claim.run
        self._prompt_view = PromptView(claim, agent, parts.database, parts.compactor)
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
        # A request may have woken it: a turn is not the work of that request, and waits behind no tenant's writes.
        act_for(None)
        try:
            journal = await self._open()
            await self._move(journal)
            journal.keep()
        except LeaseLost as lost:
            _LOG.info("turn given up: %s", lost)
        finally:
            self._waiter.close()
            self._parts.feed.ended(self._run.tenant_id, self.run_id)

    async def _open(self) -> TurnJournal:
        """The journal, folded (by one query, or none), with the run or the turn begun."""
        parts, claim = self._parts, self._claim
        async with parts.replays:
            folded = await parts.journal.fold(claim.thread)
        journal = TurnJournal(
            claim,
            folded,
            JournalWriter(parts.database, claim.thread, run=claim.run.number, now_us=parts.now_us),
            feed=parts.feed,
            fold_cache=parts.journal.fold_cache,
            task_signal=parts.task_signal,
            tracer=parts.tracer,
        )
        await begin(journal, claim, self._agent, stored=parts.journal, tracer=parts.tracer)
        return journal

    async def _move(self, journal: TurnJournal) -> None:
        for _ in range(ACTION_COUNT_MAX):
            action = next_action(
                journal.state,
                self._agent,
                self._run,
                fence=journal.fence,
                now_us=self._parts.now_us(),
                begun=self._begun,
            )
            match action:
                case Note(entries):
                    # Not an intent either: an intent without its call would put the step in doubt for the next worker.
                    for entry in entries if self._may_start() else ():
                        journal.stage(entry)
                case Recall() | CallModel() | Perform():
                    if await self._is_ready(journal):
                        await self._perform(journal, action)
                case Park(outcome):
                    return await journal.flush(outcome)
                case Settle():
                    return await self._settle(journal, action)
                case RollBack():
                    return await self._roll_back(journal)
                case other:
                    assert_never(other)
            if self._released:
                return await journal.flush(RunOutcome.of_release())
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
        """Whether the lease holds for long enough; if not, the thread is released, and its next worker goes on."""
        if not self._is_safe():
            _LOG.warning("run %s is let go: the worker's lease is not safe any more", self.run_id)
            self._released = True
        return not self._released

    async def _perform(self, journal: TurnJournal, action: Recall | CallModel | Perform) -> None:
        match action:
            case Recall():
                step = perform_recall(
                    self._claim, self._agent, action, recollection=self._parts.recollection, now=self._parts.now
                )
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
        parts, prompt = self._parts, self._prompt_view.prompt
        call = ModelCall(parts.model, self._agent, journal, action, prompt, now_us=parts.now_us, chance=parts.chance)
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
                steps.append(self._tool_call(journal, tool, call))
        await self._finish_each(journal, {self._waiter.begin(step) for step in steps})

    def _tool_call(self, journal: TurnJournal, tool: Tool, call: Call) -> _Step:
        parts = self._parts
        context = context_of(
            self._claim,
            self._agent,
            call,
            journal,
            data_dir=parts.data_dir,
            now=parts.now,
            recollection=parts.recollection,
            compaction=None if parts.compactor is None else parts.compactor.service,
        )
        return call_tool(tool, call, context, journal.state, now_us=parts.now_us, chance=parts.chance)

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
        used_s = (self._parts.now_us() - execution.run_started_at_us) / 1_000_000
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
        inbox = await self._parts.database.read(
            lambda connection: read_inbox(connection, self.thread, self._claim.run.number)
        )
        if inbox is None:
            raise LeaseLost(self._claim.thread.thread_id, journal.fence)
        self._run = inbox.run
        fold_answers(journal, inbox.answers)
        return True

    async def _settle(self, journal: TurnJournal, action: Settle) -> None:
        outcome = action.outcome
        journal.stage(
            RunSettled(
                run_id=self._run.run_id,
                status=outcome.status,
                reason=outcome.reason,
                failure=outcome.failure,
                paused_at=action.paused_at,
            )
        )
        for task in tasks_after(self._agent, self._run, self._parts.now_us()):
            journal.order(task)
        try:
            await journal.flush(outcome)
        except Overtaken:
            await self._roll_back(journal)

    async def _roll_back(self, journal: TurnJournal) -> None:
        for call in journal.state.open_waits:
            if call.wait_id is not None:
                journal.stage(WaitSuperseded(wait_id=call.wait_id, step_key=call.step_key))
        await journal.flush()
        journal.fork(*await fork_at(self._parts.journal, self._claim, journal.first_seq - 1))
        journal.stage(RolledBack(run_id=self._run.run_id))
        await journal.flush(RunOutcome(status=RunStatus.INTERRUPTED, reason="rolled back", hidden=True))
