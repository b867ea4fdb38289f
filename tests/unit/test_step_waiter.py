"""What a turn waits for: the end of a step, something outside, or its time."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.support.waiting import wait_until
from threadmark.state import Entry, TurnStarted
from threadmark.workers.turn.step_waiter import StepWaiter

AN_HOUR_S = 3600.0
ENTRY = TurnStarted(worker_id="w", attempt=1)


async def ending(gate: asyncio.Event) -> Sequence[Entry]:
    """A step that ends when it is let."""
    await gate.wait()
    return [ENTRY]


async def test_a_step_that_ends_wakes_the_turn() -> None:
    """Only those that ended are returned."""
    waiter, first, second = StepWaiter(), asyncio.Event(), asyncio.Event()
    running = {waiter.begin(ending(first)), waiter.begin(ending(second))}
    waiting = asyncio.create_task(waiter.next_ended(running, AN_HOUR_S))
    await asyncio.sleep(0)

    first.set()
    ended = await waiting

    assert [task.result() for task in ended] == [[ENTRY]]
    second.set()
    assert await waiter.next_ended(running - ended, AN_HOUR_S) == running - ended
    waiter.close()


async def test_an_ended_step_wakes_the_turn_now_or_at_its_next_wait() -> None:
    """Whether the turn waits already or comes later; until somebody looked, it does not wait again."""
    waiter, gate = StepWaiter(), asyncio.Event()
    running = {waiter.begin(ending(gate))}
    waiting = asyncio.create_task(waiter.next_ended(running, AN_HOUR_S))
    await asyncio.sleep(0)

    waiter.wake()

    assert await waiting == set()
    assert await waiter.next_ended(running, AN_HOUR_S) == set()
    waiter.came = False
    gate.set()
    assert await waiter.next_ended(running, AN_HOUR_S) == running
    waiter.close()


@pytest.mark.parametrize("earlier_s", [None, AN_HOUR_S])
async def test_the_turn_wakes_when_its_time_is_up(earlier_s: float | None) -> None:
    """A timer that was set for later does not make it late."""
    waiter, gate = StepWaiter(), asyncio.Event()
    running = {waiter.begin(ending(gate))}
    if earlier_s is not None:
        waiting = asyncio.create_task(waiter.next_ended(running, earlier_s))
        await asyncio.sleep(0)
        waiter.wake()
        assert await waiting == set()
        waiter.came = False

    assert await waiter.next_ended(running, 0.001) == set()
    assert await waiter.next_ended(running, 0.0) == set()

    gate.set()
    assert await waiter.next_ended(running, AN_HOUR_S) == running
    waiter.close()


async def test_a_turn_that_is_over_leaves_no_timer() -> None:
    """An hour of wall time would keep the turn, and all it holds, for an hour."""
    loop = asyncio.get_running_loop()
    waiter, gate = StepWaiter(), asyncio.Event()
    step = waiter.begin(ending(gate))
    waiting = asyncio.create_task(waiter.next_ended({step}, AN_HOUR_S))
    await asyncio.sleep(0)
    gate.set()
    await waiting

    waiter.close()

    timers = [each for each in getattr(loop, "_scheduled") if not each.cancelled()]  # noqa: B009
    assert not [each for each in timers if each.when() > loop.time() + AN_HOUR_S / 2]


async def test_a_turn_that_is_cancelled_while_it_waits_leaves_its_steps_to_its_caller() -> None:
    """The cancellation goes through, and a step that ends later wakes nobody."""
    waiter, gate = StepWaiter(), asyncio.Event()
    step = waiter.begin(ending(gate))
    waiting = asyncio.create_task(waiter.next_ended({step}, AN_HOUR_S))
    await asyncio.sleep(0)

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.set()

    await wait_until(step.done, description="the step to end")
    assert step.result() == [ENTRY]
    waiter.close()
