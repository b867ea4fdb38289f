"""Waiting for a condition: tests wait until something is true and never for a length of time."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast, overload

T = TypeVar("T")

POLL_S = 0.01


@overload
async def wait_until(
    predicate: Callable[[], Awaitable[T]], *, description: str, timeout_s: float = ..., poll_s: float = ...
) -> T: ...
@overload
async def wait_until(
    predicate: Callable[[], T], *, description: str, timeout_s: float = ..., poll_s: float = ...
) -> T: ...
async def wait_until(
    predicate: Callable[[], object], *, description: str, timeout_s: float = 10.0, poll_s: float = POLL_S
) -> object:
    """Ask `predicate` (plain or async) until its answer is true, and return that answer.

    `description` completes the sentence "waited 10 s for …". Raises AssertionError with it and with the last answer
    after `timeout_s`, also when an async predicate itself hangs. What the predicate raises is raised at once: a
    condition that may fail for a while (a port not yet open) says so itself by returning something false.
    """
    answer: object = None
    try:
        async with asyncio.timeout(timeout_s):
            while not (answer := await _ask(predicate)):  # noqa: ASYNC110 - what is waited for knows no event of ours
                await asyncio.sleep(poll_s)
    except TimeoutError as error:
        raise AssertionError(f"waited {timeout_s:g} s for {description}; last answer: {answer!r}") from error
    return answer


async def _ask(predicate: Callable[[], object]) -> object:
    answer = predicate()
    return await cast("Awaitable[object]", answer) if inspect.isawaitable(answer) else answer
