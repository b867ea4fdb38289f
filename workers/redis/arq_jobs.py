"""What arq calls: a job is a notification for one run or one task, and this process's worker does the rest.

A job ends as soon as its run or task is claimed; what follows is the worker's, under the lease of the database. A job
that lasted as long as a turn would leave a mark in Redis for as long, after a kill, and be ended by arq's time-out
before.
"""

import re
from typing import Any

from arq import Retry
from arq.worker import Function, func

from threadmark.workers.fleet.worker import Worker
from threadmark.workers.redis.redis_notifier import RUN_TASK, TAKE_TURN

__all__ = ["ATTEMPT_MAX", "FUNCTIONS", "run_task", "take_turn"]

#: A full worker leaves a job to the others so often (each after `PASS_ON_S` seconds); then the sweep has found its run.
ATTEMPT_MAX = 5
PASS_ON_S = 0.1
JOB_TIMEOUT_S = 60
_ID = re.compile(r"[0-9a-f-]{36}")


async def take_turn(ctx: dict[str, Any], run_id: object = None, *_: object, **__: object) -> None:
    """Claim the run and begin its turn. What is unknown, not due, taken or no run id at all changes nothing."""
    worker: Worker = ctx["worker"]
    if not isinstance(run_id, str) or not _ID.fullmatch(run_id):
        return
    if not await worker.take(run_id) and ctx["job_try"] < ATTEMPT_MAX:
        raise Retry(defer=PASS_ON_S)


async def run_task(ctx: dict[str, Any], task_id: object = None, *_: object, **__: object) -> None:
    """Claim the task and begin it. What is unknown, not due, taken or no task id at all changes nothing."""
    worker: Worker = ctx["worker"]
    if not isinstance(task_id, str) or not _ID.fullmatch(task_id):
        return
    if not await worker.task_runner.take(task_id) and ctx["job_try"] < ATTEMPT_MAX:
        raise Retry(defer=PASS_ON_S)


FUNCTIONS: tuple[Function, ...] = (
    func(take_turn, name=TAKE_TURN, keep_result=0, timeout=JOB_TIMEOUT_S, max_tries=ATTEMPT_MAX),
    func(run_task, name=RUN_TASK, keep_result=0, timeout=JOB_TIMEOUT_S, max_tries=ATTEMPT_MAX),
)
