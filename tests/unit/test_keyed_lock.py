"""Lanes: one at a time for a key, in the order in which they came, and nothing is left behind."""

import asyncio

import pytest

from threadmark.app.keyed_lock import KeyedLock


async def settle() -> None:
    """Let everybody go as far as they can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_key_passes_one_at_a_time_and_in_order() -> None:
    """Others pass beside it."""
    thread_locks, entered, gates = KeyedLock(), list[str](), [asyncio.Event() for _ in range(3)]

    async def say(key: str | None, name: str, gate: asyncio.Event | None = None) -> None:
        async with thread_locks.one_at_a_time(key):
            entered.append(name)
            if gate is not None:
                await gate.wait()

    crowd = [asyncio.create_task(say("hot", f"hot {number}", gate)) for number, gate in enumerate(gates)]
    await settle()
    await say("cold", "cold")
    await say(None, "on a thread of its own")
    assert entered == ["hot 0", "cold", "on a thread of its own"]

    for gate in gates:
        gate.set()
    await asyncio.gather(*crowd)
    assert entered[3:] == ["hot 1", "hot 2"]
    assert len(thread_locks) == 0


async def test_who_stops_waiting_or_fails_leaves_the_lane_to_the_next() -> None:
    """A client that went away while it waited holds up nobody."""
    thread_locks, gate = KeyedLock(), asyncio.Event()

    async def hold() -> None:
        async with thread_locks.one_at_a_time("hot"):
            await gate.wait()
            raise RuntimeError("a refusal")

    async def wait() -> str:
        async with thread_locks.one_at_a_time("hot"):
            return "passed"

    holding, leaving, last = (asyncio.create_task(each) for each in (hold(), wait(), wait()))
    await settle()
    leaving.cancel()
    await settle()
    gate.set()

    with pytest.raises(RuntimeError, match="a refusal"):
        await holding
    assert await last == "passed"
    assert leaving.cancelled()
    assert len(thread_locks) == 0
