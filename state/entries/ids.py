"""Ids of threads, runs, executions, steps and waits, and the idempotency keys that are passed to tools."""

import hashlib
import os
import uuid
from typing import NewType

__all__ = [
    "ExecutionId",
    "RunId",
    "StepKey",
    "ThreadId",
    "idempotency_key_of",
    "model_step",
    "new_id",
    "recall_step",
    "tool_step",
    "wait_id_of",
]

ThreadId = NewType("ThreadId", str)
RunId = NewType("RunId", str)
#: One piece of work: the run that began it, and the runs that resumed it.
ExecutionId = NewType("ExecutionId", str)
#: Names one step within its execution; the step keeps its key in every attempt and after every restart.
StepKey = NewType("StepKey", str)

_WAITS = uuid.UUID("5f1d3c1e-6a55-5a0e-9a3b-8d1f0c6e7a21")


def new_id(now_us: int) -> str:
    """A fresh time-ordered UUID (version 7, RFC 9562 section 5.7) for the instant `now_us` (epoch microseconds)."""
    value = (now_us // 1000 & (1 << 48) - 1) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def model_step(ordinal: int) -> StepKey:
    """The key of the `ordinal`-th model call (from 1) of an execution."""
    return StepKey(f"model-{ordinal}")


def recall_step(ordinal: int) -> StepKey:
    """The key of the `ordinal`-th recall (from 1) that an execution makes before a model call."""
    return StepKey(f"recall-{ordinal}")


def tool_step(ordinal: int, index: int) -> StepKey:
    """The key of the `index`-th call (from 0) that the `ordinal`-th model call requested."""
    return StepKey(f"tool-{ordinal}-{index}")


def idempotency_key_of(execution_id: ExecutionId, step_key: StepKey) -> str:
    """The key that a tool passes to the other side: equal in every attempt of the step, and unique to the step."""
    return "tmk_" + hashlib.sha256(f"{execution_id}/{step_key}".encode()).hexdigest()[:40]


def wait_id_of(execution_id: ExecutionId, step_key: StepKey, kind: str) -> str:
    """The id of the wait that a step opens; a replay derives the same id."""
    return str(uuid.uuid5(_WAITS, f"{execution_id}/{step_key}/{kind}"))
