"""Compaction of many threads, as one background task that survives its worker.

A batch of threads at a time: its outcome is reported, with where to go on, before the next. A batch that a death
cut short is gone through again, and finds what it had done: each thread's compaction has a key of its own.
"""

import asyncio
from collections import Counter
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET

from threadmark.compaction import (
    BudgetSpent,
    Compaction,
    CompactionStatus,
    Order,
    Policy,
    Preview,
    SummariserKind,
    Trigger,
    dropped_in,
    purse_spent,
)
from threadmark.state import Database, NotFound, Thread, ThreadFilter, count_threads, search_threads, sort_key, to_us
from threadmark.state.tasks.tasks import Task
from threadmark.workers.tasks.compaction_outlook import outlook_of
from threadmark.workers.tasks.compaction_tasks import Compactor, add_compaction_task
from threadmark.workers.tasks.task_context import TaskContext

__all__ = ["COMPACT_MANY", "JobPayload", "JobProgress", "compact_many", "key_prefix"]

#: The kind of the task.
COMPACT_MANY = "compact_many"
BATCH_FACTOR = 4  #: threads of a batch for each that is compacted at the same time
#: How often a thread that a run holds is looked at again before it is left to a task of its own.
BUSY_COUNT_MAX, BUSY_S = 3, 0.5
BUSY, GONE = "busy", "gone"
#: Bounds that end a job, each by its name.
TOKENS_USED, MONEY_USED = "prompt_tokens_max", "cost_max"


class JobPayload(msgspec.Struct, frozen=True, kw_only=True):
    """What a job is to do. `prompt_tokens_max` bounds what models are shown over all threads together.

    With `has_purse` its money comes from a purse of the task's name, which `cost_max` bounds.
    """

    status: str | None = None
    metadata: dict[str, Any] | None = None
    thread_ids: tuple[str, ...] | None = None
    policy: Policy = Policy()
    summariser: SummariserKind = SummariserKind.EXTRACTIVE
    dry_run: bool = False
    concurrency: int = 4
    prompt_tokens_max: int | None = None
    cost_max: str | None = None
    has_purse: bool = False
    requested_by: str = ""

    @property
    def chosen(self) -> ThreadFilter:
        """Which threads."""
        return ThreadFilter(metadata=self.metadata, status=self.status, ids=self.thread_ids)


class JobProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a job is. `outcomes` counts threads by their outcome; `after` is where it goes on.

    `cost` is in picos, and None where the price of the model is not configured. Outcomes are statuses of compactions,
    `would_commit` in a dry run, `busy` (a run holds the thread; its compaction follows by itself) and `gone`.
    """

    thread_count: int
    done_count: int = 0
    outcomes: dict[str, int] = {}
    tokens_before: int = 0
    tokens_after: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    cost: int | None = None
    critical_dropped: int = 0
    after: tuple[int | str, int] | None = None
    stopped_by: str | None = None


class _Outcome(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    tokens_before: int = 0
    tokens_after: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    critical_dropped: int = 0


class _JobBudget:
    """Prompt tokens that may still be spent. What a compaction may cost at most is set aside before it begins."""

    def __init__(self, total: int | None, spent: int) -> None:
        self._total, self._spent, self._reserved = total, spent, 0
        self._changed = asyncio.Condition()

    async def reserve(self, amount: int) -> bool:
        """Set an amount aside, once it is certain that it is there; False when it never will be."""
        async with self._changed:
            while self._total is not None and self._spent + self._reserved + amount > self._total:
                if self._reserved == 0:
                    return False
                await self._changed.wait()
            self._reserved += amount
            return True

    async def settle(self, amount: int, used: int) -> None:
        """Give back what was set aside and not used."""
        async with self._changed:
            self._reserved -= amount
            self._spent += used
            self._changed.notify_all()


def key_prefix(task_id: str) -> str:
    """How the keys of the job's compactions begin; the thread's id follows."""
    return f"job:{task_id}:"


async def compact_many(task: Task, context: TaskContext, *, database: Database, compactor: Compactor) -> dict[str, Any]:
    """The handler of COMPACT_MANY."""
    job = msgspec.convert(task.payload, JobPayload)
    if task.progress is None:
        count = await database.read(partial(count_threads, tenant_id=task.tenant_id, chosen=job.chosen))
        progress = JobProgress(thread_count=count)
        await context.report(msgspec.to_builtins(progress))
    else:
        progress = msgspec.convert(task.progress, JobProgress)
    while progress.stopped_by is None and (threads := await _batch(database, task, job, progress)):
        purse = _JobBudget(job.prompt_tokens_max, progress.prompt_tokens)
        room = asyncio.Semaphore(job.concurrency)
        async with asyncio.TaskGroup() as group:
            doing = [group.create_task(_one(database, compactor, task, job, each, room, purse)) for each in threads]
        progress = _further(progress, [each.result() for each in doing], threads[-1], await _cost(database, task, job))
        await context.report(msgspec.to_builtins(progress))
    return dict(msgspec.to_builtins(progress))


async def _cost(database: Database, task: Task, job: JobPayload) -> int | None:
    return await database.read(partial(purse_spent, purse_id=task.task_id)) if job.has_purse else None


async def _batch(database: Database, task: Task, job: JobPayload, progress: JobProgress) -> list[Thread]:
    return await database.read(
        lambda connection: search_threads(
            connection,
            task.tenant_id,
            job.chosen,
            sort_by="created_at",
            descending=False,
            limit=job.concurrency * BATCH_FACTOR,
            around=progress.after,
        )
    )


async def _one(
    database: Database,
    compactor: Compactor,
    task: Task,
    job: JobPayload,
    thread: Thread,
    room: asyncio.Semaphore,
    purse: _JobBudget,
) -> _Outcome:
    """Compact one thread, when there is room and money for it."""
    amount = _bound_of(job)
    async with room:
        if not await purse.reserve(amount):
            return _Outcome(what=TOKENS_USED)
        outcome = _Outcome(what=GONE)
        try:
            outcome = await _compact(database, compactor, task, job, thread)
        except NotFound:
            outcome = _Outcome(what=GONE)
        except BudgetSpent:
            outcome = _Outcome(what=MONEY_USED)
        finally:
            await purse.settle(amount, outcome.prompt_tokens)
        return outcome


async def _compact(database: Database, compactor: Compactor, task: Task, job: JobPayload, thread: Thread) -> _Outcome:
    compactions = compactor.service.compactions
    order = Order(
        key=f"{key_prefix(task.task_id)}{thread.thread_id}",
        policy=job.policy,
        trigger=Trigger.BULK,
        summariser=job.summariser,
        requested_by=job.requested_by,
        purse=task.task_id if job.has_purse else UNSET,
    )
    if job.dry_run:
        preview = await compactor.preview(task.tenant_id, thread.thread_id, order)
        await compactions.keep_outlook(task.task_id, thread.number, outlook_of(preview, thread.thread_id))
        return _previewed(preview)
    ordered, _ = await compactions.begin(task.tenant_id, thread.thread_id, order)
    for _ in range(BUSY_COUNT_MAX):
        done = await compactor.perform(ordered.compaction_id, job.summariser)
        if not done.is_open:
            return _performed(done, job)
        await asyncio.sleep(BUSY_S)
    await database.write(partial(add_compaction_task, ordered=ordered, now_us=to_us(compactor.now())), repeatable=True)
    # It is compacted after the job, maybe: what it may cost then is the job's all the same, or the bound would be none.
    return _Outcome(what=BUSY, prompt_tokens=_bound_of(job))


def _bound_of(job: JobPayload) -> int:
    """The most that the compaction of one thread may show a model, in tokens."""
    return job.policy.prompt_tokens_max if job.summariser is SummariserKind.MODEL else 0


def _performed(done: Compaction, job: JobPayload) -> _Outcome:
    # The cost of failed calls is not known; they cannot have cost more than their bound.
    prompt_tokens = _bound_of(job) if done.status is CompactionStatus.ABORTED else done.prompt_tokens
    return _Outcome(
        what=MONEY_USED if done.error_code == MONEY_USED else str(done.status),
        tokens_before=done.tokens_before,
        tokens_after=done.tokens_after,
        prompt_tokens=prompt_tokens,
        output_tokens=done.output_tokens,
        critical_dropped=done.critical_dropped,
    )


def _previewed(preview: Preview) -> _Outcome:
    if preview.refusal is not None:
        tokens = preview.refusal.tokens_before
        return _Outcome(what=str(CompactionStatus.REFUSED), tokens_before=tokens, tokens_after=tokens)
    made = preview.proposal
    if made is None:
        return _Outcome(what=str(CompactionStatus.ABORTED))
    return _Outcome(
        what="would_commit",
        tokens_before=made.tokens_before,
        tokens_after=made.tokens_after,
        prompt_tokens=made.prompt_tokens,
        output_tokens=made.output_tokens,
        critical_dropped=dropped_in(made.ledger.rows).critical_count,
    )


def _further(progress: JobProgress, outcomes: list[_Outcome], last: Thread, cost: int | None) -> JobProgress:
    over = [each.what for each in outcomes if each.what in (TOKENS_USED, MONEY_USED)]
    done = [each for each in outcomes if each.what not in over]
    return JobProgress(
        thread_count=progress.thread_count,
        done_count=progress.done_count + len(done),
        outcomes=dict(Counter(progress.outcomes) + Counter(each.what for each in done)),
        tokens_before=progress.tokens_before + sum(each.tokens_before for each in done),
        tokens_after=progress.tokens_after + sum(each.tokens_after for each in done),
        prompt_tokens=progress.prompt_tokens + sum(each.prompt_tokens for each in done),
        output_tokens=progress.output_tokens + sum(each.output_tokens for each in done),
        cost=cost,
        critical_dropped=progress.critical_dropped + sum(each.critical_dropped for each in done),
        after=sort_key(last, "created_at"),
        stopped_by=over[0] if over else None,
    )
