"""Compaction jobs as they are ordered and shown."""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from threadmark.app.wire.compactions.compaction_policy_schema import PolicyName
from threadmark.app.wire.compactions.compaction_schema import Money, PolicyBody
from threadmark.compaction import Policy, SummariserKind, picos_of, spell_money
from threadmark.state.entries.entry import Failure
from threadmark.state.tasks.tasks import Task
from threadmark.workers.tasks.compaction_job import JobPayload, JobProgress

__all__ = ["JobFilter", "NewCompactionJob", "ShownJob", "ShownProgress"]

CONCURRENCY_MAX = 16


class JobFilter(Struct, forbid_unknown_fields=True, kw_only=True):
    """Which threads of the tenant: all conditions hold; without any, all of them."""

    status: Literal["idle", "busy", "interrupted", "error"] | None = None
    metadata: dict[str, Any] | None = None
    thread_ids: Annotated[list[str], Meta(min_length=1, max_length=10_000)] | None = None


class NewCompactionJob(Struct, forbid_unknown_fields=True, kw_only=True):
    """A job over many threads.

    `prompt_tokens_max` bounds what models are shown over all threads together: the job ends before it would be passed.
    It bounds each thread's compaction too, where the policy allows more. `cost_max` bounds what models cost over all
    threads together, in the currency of the server's prices: no call is made that could pass it. `policy` is a
    policy, or the name of one under `/compaction-policies`, whose values now are those of the whole job.
    """

    filter: JobFilter = msgspec.field(default_factory=JobFilter)
    policy: PolicyBody | PolicyName | None = None
    summariser: Literal["extractive", "model"] = "extractive"
    dry_run: bool = False
    concurrency: Annotated[int, Meta(ge=1, le=CONCURRENCY_MAX)] = 4
    prompt_tokens_max: Annotated[int, Meta(ge=0, le=10**12)] | None = None
    cost_max: Money | None = None

    @property
    def cost_picos_max(self) -> int | None:
        """The cap in money, in picos."""
        return None if self.cost_max is None else picos_of(self.cost_max)

    def payload(self, requested_by: str, policy: Policy, *, has_purse: bool) -> JobPayload:
        """What the job's task is given, by the policy that is asked for."""
        if self.prompt_tokens_max is not None:
            bound = min(policy.prompt_tokens_max, self.prompt_tokens_max)
            policy = msgspec.structs.replace(policy, prompt_tokens_max=bound)
        return JobPayload(
            status=self.filter.status,
            metadata=self.filter.metadata,
            thread_ids=None if self.filter.thread_ids is None else tuple(self.filter.thread_ids),
            policy=policy,
            summariser=SummariserKind(self.summariser),
            dry_run=self.dry_run,
            concurrency=self.concurrency,
            prompt_tokens_max=self.prompt_tokens_max,
            cost_max=None if self.cost_picos_max is None else spell_money(self.cost_picos_max),
            has_purse=has_purse,
            requested_by=requested_by,
        )


class ShownProgress(Struct, kw_only=True):
    """How far a job is. `thread_count` are the threads that matched when it began.

    `outcomes` counts threads by their outcome: `committed` (`would_commit` in a dry run), `refused`, `aborted`,
    `busy` (a run holds the thread; its compaction follows by itself), `gone`. `cost` is what the model's
    calls have cost, with what is set aside for those on their way; null without a price of the model. `stopped_by`
    names the bound that ended the job before its last thread.
    """

    thread_count: int
    done_count: int
    outcomes: dict[str, int]
    tokens_before: int
    tokens_after: int
    prompt_tokens: int
    output_tokens: int
    cost: str | None
    critical_dropped: int
    stopped_by: str | None

    @classmethod
    def of(cls, progress: JobProgress) -> "ShownProgress":
        """The progress without where it goes on."""
        shown = msgspec.structs.asdict(progress)
        del shown["after"]
        shown["cost"] = None if progress.cost is None else spell_money(progress.cost)
        return cls(**shown)


class ShownJob(Struct, kw_only=True):
    """A job over many threads. `attempts` counts workers that took it up."""

    job_id: str
    status: Literal["pending", "running", "paused", "done", "failed", "cancelled"]
    dry_run: bool
    summariser: str
    concurrency: int
    prompt_tokens_max: int | None
    cost_max: str | None
    filter: dict[str, Any]
    policy: dict[str, Any]
    progress: ShownProgress | None
    attempts: int
    error: Failure | None
    requested_by: str
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, task: Task) -> "ShownJob":
        """The job as it is shown."""
        job = msgspec.convert(task.payload, JobPayload)
        progress = None if task.progress is None else msgspec.convert(task.progress, JobProgress)
        return cls(
            job_id=task.task_id,
            status="paused" if task.is_paused else task.status.value,
            dry_run=job.dry_run,
            summariser=job.summariser,
            concurrency=job.concurrency,
            prompt_tokens_max=job.prompt_tokens_max,
            cost_max=job.cost_max,
            filter={"status": job.status, "metadata": job.metadata, "thread_ids": job.thread_ids},
            policy=msgspec.to_builtins(job.policy, order="deterministic"),
            progress=None if progress is None else ShownProgress.of(progress),
            attempts=task.attempts,
            error=task.failure,
            requested_by=job.requested_by,
            created_at=task.created_at,
            updated_at=task.updated_at,
        )
