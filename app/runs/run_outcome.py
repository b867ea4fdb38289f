"""Following a run: whether there is more to come, and what it came to."""

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import msgspec
from sqlalchemy import Connection

from threadmark.app.wire.conversations.interrupt_schema import interrupt_of_call
from threadmark.app.wire.conversations.state_schema import values_of
from threadmark.state import (
    SETTLED,
    ParkReason,
    Run,
    ThreadState,
    find_run,
    fold,
    get_thread,
    lineage_of,
    read_entries,
    read_leaves,
    visible,
)
from threadmark.workers.wiring import Resources

__all__ = ["POLL_S", "is_over", "outcome_of", "until_over"]

#: How often a reader polls for entries without a notification: another process may move the run.
POLL_S = 0.5
#: A waiter for the end of a run asks no more often than this.
PAUSE_S = 0.02


def is_over(run: Run | None) -> bool:
    """Whether nothing more comes by itself: it has ended, it is gone, or it is parked until a person acts on it."""
    return run is None or run.status in SETTLED or run.parked in (ParkReason.IN_DOUBT, ParkReason.QUARANTINED)


async def until_over(wired: Resources, run: Run) -> AsyncGenerator[None, None]:
    """Yields now and then, at least every POLL_S seconds, until the run is over."""
    loop = asyncio.get_running_loop()
    ask = partial(find_run, tenant_id=run.tenant_id, run_id=run.run_id)
    with wired.feed.watch(run.tenant_id, run.run_id) as watch:
        while True:
            asked_s = loop.time()
            if is_over(await wired.database.read(ask)):
                return
            await watch.changed(POLL_S)
            yield None
            # The feed tells of every word of a reply, too; asking after each would be asking for nothing.
            await asyncio.sleep(asked_s + PAUSE_S - loop.time())


def outcome_of(connection: Connection, tenant_id: str, run_id: str) -> bytes:
    """What a run that is over came to: its last values, with its open questions, or its error."""
    run = find_run(connection, tenant_id, run_id)
    if run is None:
        return _error("RunGone", "The run was rolled back or deleted while it was waited for.")
    if run.failure is not None:
        return _error(run.failure.error, run.failure.message)
    state = _state_at_end(connection, run)
    values = values_of(state.messages)
    if state.open_waits:
        values["__interrupt__"] = [interrupt_of_call(call) for call in state.open_waits]
    return msgspec.json.encode(values)


def _state_at_end(connection: Connection, run: Run) -> ThreadState:
    entries = read_entries(connection, run.thread)
    own = [each for each in entries if each.run == run.number]
    if not own:
        # It was cancelled before it began.
        return fold(visible(entries, get_thread(connection, run.tenant_id, run.thread_id).lineage))
    lineage = lineage_of(read_leaves(connection, run.thread), own[-1].branch)
    return fold(each for each in visible(entries, lineage) if each.seq <= own[-1].seq)


def _error(error: str, message: str) -> bytes:
    shown: dict[str, Any] = {"__error__": {"error": error, "message": message}}
    return msgspec.json.encode(shown)
