"""Tests wait for conditions, and a wait in vain says what for."""

import asyncio
from itertools import count

import pytest

from tests.support.waiting import wait_until


async def test_a_wait_returns_what_it_waited_for() -> None:
    """The first true answer is returned, and nobody is asked again after it."""
    answers = iter([None, 0, "ready"])

    assert await wait_until(lambda: next(answers), description="an answer") == "ready"
    assert list(answers) == []


async def test_a_condition_may_be_asynchronous() -> None:
    """An async predicate is awaited each time."""
    numbers = count()

    async def third() -> int | None:
        return number if (number := next(numbers)) == 2 else None

    assert await wait_until(third, description="the third number") == 2


async def test_a_wait_in_vain_names_what_it_waited_for() -> None:
    """The failure has the description and the last answer."""
    with pytest.raises(AssertionError, match=r"for the impossible; last answer: 0"):
        await wait_until(lambda: 0, description="the impossible", timeout_s=0.02)


async def test_a_condition_that_hangs_ends_the_wait() -> None:
    """The bound holds inside an async predicate too."""
    with pytest.raises(AssertionError, match="for ever"):
        await wait_until(asyncio.Event().wait, description="for ever", timeout_s=0.02)


async def test_what_a_condition_raises_is_raised_at_once() -> None:
    """No exception is taken for "not yet"."""
    with pytest.raises(ZeroDivisionError):
        await wait_until(lambda: 1 / 0, description="a broken condition")
