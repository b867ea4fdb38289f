"""Background tasks of a worker process: claims them, has their handlers do them, and writes down how they ended.

What handlers are given and may expect is in `threadmark.workers.tasks.task_context`.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from threadmark.state import Database, is_outage
from threadmark.state.tasks.task_claims import (
    HeldTask,
    claim_task,
    claim_tasks,
    fail_task,
    finish_task,
    next_task_us,
    own_tasks,
    release_task,
)
from threadmark.state.tasks.tasks import Task
from threadmark.workers.fleet.lease import Lease
from threadmark.workers.supervisor import Loop, Supervisor, stale_after_s
from threadmark.workers.tasks.task_context import Handler, Reschedule, TaskContext, TaskLost, attempt, delay_s_after
from threadmark.workers.turn.step_execution import failure_of

__all__ = ["TaskRunner"]

TASK_COUNT_MAX = 4
#: How long a stop waits for handlers that were cancelled.
STOP_S = 5.0
_LOG = logging.getLogger("threadmark.chores")


@dataclass(slots=True)
class _Attempt:
    """A task that a handler is at."""

    task: Task
    context: TaskContext
    doing: "asyncio.Task[Any]"
    on_end: "Callable[[_Attempt], None] | None" = None
    is_cancelled: bool = False  #: whatever its handler raises from then on is no failure of the task

    @property
    def held(self) -> HeldTask:
        """The right to end the task."""
        return self.context.held

    @property
    def has_progressed(self) -> bool:
        """Whether it got further than the attempts before."""
        return self.context.has_progressed

    def end(self) -> None:
        """Cut it short; once, so that what its handler does at its end is not cut short too."""
        if not self.is_cancelled:
            self.is_cancelled = True
            self.doing.cancel()


class TaskRunner:
    """Runs in the event loop of its worker process, under the worker's lease, from `start` to `stop`."""

    def __init__(
        self,
        database: Database,
        lease: Lease,
        worker_id: str,
        handlers: Mapping[str, Handler],
        *,
        sweep_s: float,
        count_max: int = TASK_COUNT_MAX,
        supervisor: Supervisor | None = None,
        bell: asyncio.Event | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`bell` is set where a task was added; `chance`, in [0, 1), spreads what is tried again."""
        self._supervisor = supervisor or Supervisor()
        self._database = database
        self._chance = chance
        self._lease = lease
        self._worker_id = worker_id
        self._handlers = dict(handlers)
        self._sweep_s = sweep_s
        self._count_max = count_max
        self._bell = bell or asyncio.Event()
        self._attempts: dict[HeldTask, _Attempt] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._claiming = asyncio.Lock()
        self._loops: list[Loop] = []
        self._stopping = False
        self._suspicious = False
        self._look_due = 0.0
        self._is_allowed: Callable[[], bool] = _always
        self.released: list[tuple[str, int]] = []  #: what a stop gave back, each with the number of its next attempt

    @property
    def is_busy(self) -> bool:
        """Whether a task is under way, or being claimed."""
        return bool(self._attempts) or self._claiming.locked()

    def wait_for(self, is_allowed: Callable[[], bool]) -> None:
        """Claim only while `is_allowed` says so."""
        self._is_allowed = is_allowed

    @property
    def kinds(self) -> Collection[str]:
        """The kinds of tasks that this worker can do."""
        return self._handlers.keys()

    def start(self) -> None:
        """Begin to claim. The lease must have begun."""
        if self._handlers:
            stale_s = stale_after_s(self._sweep_s)
            sweep = self._supervisor.start("task sweep", self._serve, stale_s=stale_s, delay_s_max=self._sweep_s)
            self._loops.append(sweep)

    def notify(self) -> None:
        """There is a task to claim, or to look at."""
        self._bell.set()

    async def take(self, task_id: str) -> bool:
        """Claim this task and begin it, if it is due and of a kind that is known here; False when there is no room.

        Never raises: a task that could not be claimed is found by the sweep.
        """
        async with self._claiming:
            if not self._may_claim:
                return False
            try:
                task = await self._database.write(
                    lambda connection: claim_task(connection, self._worker_id, self.kinds, task_id)
                )
            except Exception:
                _LOG.exception("task %s could not be claimed", task_id)
                self._suspicious = True
                return True
            if task is not None:
                self.begin(task)
        return True

    def begin(self, task: Task, on_end: Callable[[_Attempt], None] | None = None) -> _Attempt:
        """Begin an attempt of a task that was claimed for this worker; `on_end` follows when it has ended."""
        held = HeldTask(number=task.number, task_id=task.task_id, fence=task.fence)
        context = TaskContext(self._database, held, task.progress)
        doing = asyncio.create_task(attempt(self._handlers[task.kind], task, context), name=f"task {task.task_id}")
        begun = self._attempts[held] = _Attempt(task, context, doing, on_end)
        ending = asyncio.create_task(self._end(begun), name=f"end of task {task.task_id}")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        return begun

    def notice(self, task_ids: Collection[str]) -> None:
        """Something came from outside for these tasks: a cancellation."""
        if any(each.task.task_id in task_ids for each in self._attempts.values()):
            self._look_due = 0.0
            self.notify()

    def let_go(self) -> None:
        """The lease is lost: every task belongs to another worker now."""
        for each in self._attempts.values():
            each.end()

    async def stop(self) -> None:
        """Claim nothing more, cancel what is being done, and release it at once."""
        self._stopping = True
        self.notify()
        await self._supervisor.stop(*self._loops, patience_s=STOP_S)
        # A claim that is on its way ends first: its task would belong to a worker that does not know of it.
        async with self._claiming:
            self.released = [(each.task.task_id, each.task.attempts + 1) for each in self._attempts.values()]
            self.let_go()
        if self._ending:
            await asyncio.wait(self._ending, timeout=STOP_S)
        for each in list(self._attempts.values()):
            _LOG.error("task %s (%s) does not end; it is given to others", each.task.task_id, each.task.kind)
            try:
                await self._release(each)
            except Exception as error:
                if not is_outage(error):
                    raise
                # The lease ends by itself then, and with it this worker's right to the task.
                _LOG.warning("task %s could not be released: the database is away", each.task.task_id)

    @property
    def _may_claim(self) -> bool:
        is_free = not self._stopping and self._lease.is_safe and len(self._attempts) < self._count_max
        return is_free and self._is_allowed()

    async def _serve(self, loop: Loop) -> None:
        while not self._stopping:
            self._bell.clear()
            try:
                await self._look()
                wait_s = await self._claim()
            except Exception:
                # A claim whose answer was lost may have been committed; the next round looks for it.
                self._suspicious = True
                raise
            loop.completed()
            try:
                async with asyncio.timeout(wait_s):
                    await self._bell.wait()
            except TimeoutError:
                continue

    async def _claim(self) -> float:
        """Begin what can be begun; seconds until there may be more."""
        if not self._may_claim:
            return self._sweep_s
        due_us = await self._database.read(lambda connection: next_task_us(connection, self.kinds))
        if due_us is not None and due_us > 0:
            return min(self._sweep_s, due_us / 1_000_000)
        begun = due_us == 0 and await self._claim_due()
        return 0.0 if begun else self._sweep_s

    async def _claim_due(self) -> bool:
        async with self._claiming:
            room = self._count_max - len(self._attempts) if self._may_claim else 0
            if not room:
                return False
            tasks = await self._database.write(
                self._lease.sparing(lambda connection: claim_tasks(connection, self._worker_id, self.kinds, room))
            )
            for each in tasks:
                self.begin(each)
        return bool(tasks)

    async def _end(self, ended: _Attempt) -> None:
        """Wait for the handler, and record its outcome."""
        await asyncio.wait([ended.doing])
        try:
            if not await self._settle(ended):
                _LOG.info("task %s ended here after it had been taken or cancelled", ended.task.task_id)
        except Exception:
            # The task stays this worker's until the next sweep, which releases it.
            _LOG.exception("how task %s ended could not be written down", ended.task.task_id)
            self._suspicious = True
        finally:
            del self._attempts[ended.held]
            self._bell.set()
            if ended.on_end is not None:
                ended.on_end(ended)

    async def _settle(self, ended: _Attempt) -> bool:
        error: BaseException | None = asyncio.CancelledError("it was cancelled from inside")
        if not ended.doing.cancelled():
            error = ended.doing.exception()
        if isinstance(error, TaskLost):
            return False
        if isinstance(error, Reschedule):
            return await self._release(ended, round(error.delay_s * 1_000_000))
        if error is None:
            result = ended.doing.result()
            return await self._database.write(
                lambda connection: finish_task(connection, ended.held, result), repeatable=True
            )
        return await (self._release(ended) if ended.is_cancelled else self._fail(ended, error))

    async def _fail(self, ended: _Attempt, error: BaseException) -> bool:
        task = ended.task
        _LOG.warning("task %s (%s) failed", task.task_id, task.kind, exc_info=error)
        delay_s = delay_s_after(task, error, self._chance())
        delay_us = None if delay_s is None else round(delay_s * 1_000_000)
        return await self._database.write(
            lambda connection: fail_task(connection, ended.held, failure_of(error), retry_in_us=delay_us),
            repeatable=True,
        )

    async def _release(self, ended: _Attempt, delay_us: int = 0) -> bool:
        return await self._database.write(_giving_back(ended.held, delay_us), repeatable=True)

    async def _look(self) -> None:
        """Cut short what is this worker's no longer, and give back what is its own without its knowing."""
        now = asyncio.get_running_loop().time()
        if not self._suspicious and (not self._attempts or now < self._look_due):
            return
        self._look_due = now + self._sweep_s
        async with self._claiming:
            begun = dict(self._attempts)
            owned = await self._database.read(lambda connection: own_tasks(connection, self._worker_id))
        for held in begun.keys() - set(owned):
            begun[held].end()
        delay_us = round(self._sweep_s * 1_000_000)
        for stray in set(owned) - begun.keys():
            await self._database.write(_giving_back(stray, delay_us), repeatable=True)
        self._suspicious = False


def _always() -> bool:
    return True


def _giving_back(held: HeldTask, delay_us: int) -> Callable[[Any], bool]:
    return lambda connection: release_task(connection, held, delay_us=delay_us)
