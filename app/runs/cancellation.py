"""Cancelling runs: of one thread, or of all that the tenant lists."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from sqlalchemy import Connection

from threadmark.app.access import Caller
from threadmark.app.resources import Resources
from threadmark.state import (
    CancelAction,
    NothingToCancel,
    RunStatus,
    Thread,
    ThreadFilter,
    ThreadStatus,
    cancel_runs,
    get_thread,
    search_threads,
    sort_key,
)

__all__ = ["CANCEL_COUNT_MAX", "Cancellation", "cancel_everywhere"]

#: Runs that one request names.
CANCEL_COUNT_MAX = 1_000
#: Threads that are looked at together.
THREAD_COUNT = 200
_STATUSES = {
    "pending": (RunStatus.PENDING,),
    "running": (RunStatus.RUNNING,),
    "all": (RunStatus.PENDING, RunStatus.RUNNING),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation:
    """What is to stop, and how. `run_ids` None: every run with the status."""

    action: CancelAction
    run_ids: tuple[str, ...] | None = None
    status: Literal["pending", "running", "all"] = "all"

    def ask(self, connection: Connection, thread: int, now_us: int) -> tuple[str, ...]:
        """Ask the runs of the thread to stop. Raises NothingToCancel."""
        return cancel_runs(
            connection, thread, self.action, now_us, run_ids=self.run_ids, statuses=_STATUSES[self.status]
        )


async def cancel_everywhere(
    resources: Resources, caller: Caller, cancellation: Cancellation, thread_id: str | None
) -> tuple[str, ...]:
    """Cancel runs of the thread, or of every listed thread; their ids. Raises NotFound, NothingToCancel."""
    database, now_us = resources.database, resources.wired.now_us()

    def unit(connection: Connection, thread: int) -> tuple[str, ...]:
        return cancellation.ask(connection, thread, now_us)

    if thread_id is not None:
        thread = await database.read(lambda connection: get_thread(connection, caller.tenant_id, thread_id))
        return await database.write(partial(unit, thread=thread.number), thread=thread.number)
    cancelled: list[str] = []
    for each in await database.read(partial(_unfinished, tenant_id=caller.tenant_id)):
        try:
            cancelled += await database.write(partial(unit, thread=each.number), thread=each.number)
        except NothingToCancel:
            # It ended by itself meanwhile, or its runs have another status.
            continue
    if not cancelled:
        raise NothingToCancel
    return tuple(cancelled)


def _unfinished(connection: Connection, tenant_id: str) -> list[Thread]:
    """The tenant's threads that may have unfinished runs: busy ones, and those that wait for a doubt to be settled."""
    found: list[Thread] = []
    for status in (ThreadStatus.BUSY, ThreadStatus.INTERRUPTED):
        wanted, around = ThreadFilter(status=status), None
        while page := search_threads(
            connection,
            tenant_id,
            wanted,
            sort_by="created_at",
            descending=False,
            limit=THREAD_COUNT,
            around=around,
        ):
            found += page
            around = sort_key(page[-1], "created_at")
    return found
