"""The outside world of the refund story: a file that gets one line for each call that reached it.

Every line is on disk before its call goes on, so the file tells after any crash what really happened, and how often.
"""

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from threadmark import JSON, ToolContext

__all__ = ["EFFECTS_FILE", "happened", "reach_outside"]

EFFECTS_FILE = "effects.jsonl"


async def reach_outside(tool: str, arguments: Mapping[str, JSON], delay_ms: int, context: ToolContext) -> None:
    """Record the call in the effects file, tell the stream, and take `delay_ms` to come back."""
    line = {
        "tool": tool,
        "arguments": {**arguments, "delay_ms": delay_ms},
        "idempotency_key": context.idempotency_key,
        "attempt": context.attempt,
    }
    await asyncio.to_thread(_append, context.data_dir / EFFECTS_FILE, line)
    context.emit({"effect": tool, "attempt": context.attempt})
    await asyncio.sleep(delay_ms / 1000)


async def happened(tool: str, context: ToolContext) -> bool:
    """Whether a call with this context's idempotency key reached the outside world."""
    return await asyncio.to_thread(_has, context.data_dir / EFFECTS_FILE, tool, context.idempotency_key)


def _append(path: Path, line: Mapping[str, Any]) -> None:
    data = json.dumps(line, ensure_ascii=False).encode() + b"\n"
    # One write to a file opened for appending: lines of calls that run at the same time do not mix.
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        if os.write(descriptor, data) != len(data):
            raise OSError(f"{path} took only a part of a line; the disk may be full")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _has(path: Path, tool: str, idempotency_key: str) -> bool:
    return any(each["tool"] == tool and each["idempotency_key"] == idempotency_key for each in _lines(path))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)
