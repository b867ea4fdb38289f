"""What arq calls: a job is a ring for one run, and this process's worker does the rest.

A job ends as soon as its run is claimed; the turn is the worker's, under the lease of the database. A job that lasted
as long as the turn would leave a mark in Redis for as long, after a kill, and be ended by arq's time-out before.
"""

import re
from typing import Any

from arq import Retry
from arq.worker import Function, func

from workers.redis_doorbell import TAKE_TURN
from workers.worker import Worker

__all__ = ["ATTEMPT_MAX", "FUNCTIONS", "take_turn"]

#: A full worker leaves a job to the others so often (each after `PASS_ON_S` seconds); then the sweep has found its run.
ATTEMPT_MAX = 5
PASS_ON_S = 0.1
JOB_TIMEOUT_S = 60
_RUN_ID = re.compile(r"[0-9a-f-]{36}")


async def take_turn(ctx: dict[str, Any], run_id: object = None, *_: object, **__: object) -> None:
    """Claim the run and begin its turn. What is unknown, not due, taken or no run id at all changes nothing."""
    worker: Worker = ctx["worker"]
    if not isinstance(run_id, str) or not _RUN_ID.fullmatch(run_id):
        return
    if not await worker.take(run_id) and ctx["job_try"] < ATTEMPT_MAX:
        raise Retry(defer=PASS_ON_S)


FUNCTIONS: tuple[Function, ...] = (
    func(take_turn, name=TAKE_TURN, keep_result=0, timeout=JOB_TIMEOUT_S, max_tries=ATTEMPT_MAX),
)
