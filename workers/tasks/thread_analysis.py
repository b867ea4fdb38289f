"""Analysis of threads in the background, so that a compaction finds what was said read already.

A task is committed with the end of each run of an agent that compacts, and holds no words. Of several that wait, the
one of the last run that ended does the work of all.
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import msgspec

from threadmark.compaction import CompactionService
from threadmark.state import Database, Journal, NotFound, Run, RunStatus, Thread, get_thread, list_runs
from threadmark.state.tasks.tasks import NewTask, Task
from threadmark.workers.agents.agent import ChatAgent, Registry
from threadmark.workers.tasks.task_context import TaskContext

__all__ = ["ANALYSE_THREAD", "analyse_thread", "analysis_after"]

ANALYSE_THREAD = "analyse_thread"
#: Runs that are looked at for one that ended later: a thread has few that have not ended.
RUN_COUNT = 8


def analysis_after(agent: ChatAgent, run: Run) -> Iterator[NewTask]:
    """The task that a run leaves when it ends; none for an agent whose threads are compacted on demand alone."""
    if agent.compaction is not None:
        payload = {"thread_id": run.thread_id, "run_id": run.run_id, "assistant": run.assistant}
        yield NewTask(tenant_id=run.tenant_id, kind=ANALYSE_THREAD, key=run.run_id, payload=payload)


async def analyse_thread(
    task: Task,
    _: TaskContext,
    *,
    database: Database,
    journal: Journal,
    registry: Registry,
    compaction: CompactionService,
) -> dict[str, Any]:
    """The handler of ANALYSE_THREAD: how many messages there are, were known, and were analysed now."""
    agent = registry.find(str(task.payload["assistant"]))
    if agent is None or agent.compaction is None:
        return {"skipped": "the agent compacts nothing any more"}
    try:
        thread = await database.read(
            lambda connection: get_thread(connection, task.tenant_id, str(task.payload["thread_id"]))
        )
    except NotFound:
        return {"skipped": "the thread is gone"}
    if await _has_later(database, thread, task):
        return {"skipped": "a later run has ended, and left a task of its own"}
    learnt = await compaction.learn(thread, await journal.fold(thread))
    return dict(msgspec.to_builtins(learnt))


async def _has_later(database: Database, thread: Thread, task: Task) -> bool:
    """Whether a later run of the same agent came to its end in a turn; a run that was cancelled before leaves none."""
    runs = await database.read(lambda connection: list_runs(connection, thread.number, limit=RUN_COUNT))
    later = takewhile(lambda run: run.run_id != task.payload["run_id"], runs)  # the last one first
    return any(run.status == RunStatus.SUCCESS and run.assistant == task.payload["assistant"] for run in later)
