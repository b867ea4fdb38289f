"""Readers of runs: who follows one, how the answer is kept open, and what becomes of the run when its reader leaves."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial

from threadmark.app.access import Caller, KeyRing
from threadmark.app.access.seats import Seat
from threadmark.app.http.problem import MEDIA_TYPE
from threadmark.app.resources import Resources
from threadmark.app.runs.event_tail import follow
from threadmark.app.runs.run_outcome import outcome_of, until_over
from threadmark.app.sse import HEARTBEAT, LiveResponse, frame
from threadmark.app.wire.conversations.event_ids import Place
from threadmark.app.wire.conversations.event_schema import Event, StreamMode
from threadmark.app.wire.conversations.run_schema import run_path
from threadmark.state import CancelAction, NothingToCancel, Run, cancel_runs

__all__ = ["HEARTBEAT_S", "KEY_CHECK_S", "Reader"]

#: A quiet answer says that it is still there, this often.
HEARTBEAT_S = 5.0
#: How long an answer stays open after its key was revoked, at most (with what a process believes of a key: 7 seconds).
KEY_CHECK_S = 5.0
EVENT_STREAM = "text/event-stream"
#: JSON may begin with it, so a client that waits for a result reads over it.
_BLANK = b" "


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A reader of a run. The run is cancelled when the reader `cancels_on_leaving` and its connection breaks.

    `seat` is the one that its answer takes while it is open; None where it soon ends by itself.
    """

    resources: Resources
    keys: KeyRing
    caller: Caller
    run: Run
    cancels_on_leaving: bool = False
    seat: Seat | None = None

    def stream(
        self,
        modes: Collection[StreamMode],
        after: Place | None,
        *,
        with_ids: bool,
        headers: Mapping[str, str] | None = None,
    ) -> LiveResponse:
        """The run's events after a place, or from now on. A client that is cut off comes back to `Location`."""
        path = run_path(self.run)
        return LiveResponse(
            _frames(follow(self.resources.wired, self.run, modes, after), with_ids=with_ids),
            until=self._until_sent_away,
            headers={
                "location": f"{path}/stream",
                "content-location": path,
                "cache-control": "no-store",
                "x-accel-buffering": "no",
                **(headers or {}),
            },
            media_type=EVENT_STREAM,
            on_gone=self._on_gone,
            seat=self.seat,
        )

    def result(self, finish: Callable[[], Awaitable[bytes]] | None = None) -> LiveResponse:
        """What the run came to, as JSON: `finish()` once the run is over, or its last values."""
        path = run_path(self.run)
        return LiveResponse(
            _awaited(until_over(self.resources.wired, self.run), finish or self.outcome),
            until=self._until_sent_away,
            headers={"location": f"{path}/join", "content-location": path},
            media_type=MEDIA_TYPE,
            on_gone=self._on_gone,
            seat=self.seat,
        )

    async def outcome(self) -> bytes:
        """What the run came to; it is over."""
        return await self.resources.database.read(
            partial(outcome_of, tenant_id=self.run.tenant_id, run_id=self.run.run_id)
        )

    async def _until_sent_away(self) -> None:
        """Returns when the server stops, or the reader's key opens nothing any more."""
        while await self.keys.is_live(self.caller):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(KEY_CHECK_S):
                    await self.resources.stopping.wait()
                return

    async def _on_gone(self) -> None:
        if not self.cancels_on_leaving:
            return
        wired, run = self.resources.wired, self.run
        with contextlib.suppress(NothingToCancel):
            cancelled = await wired.database.write(
                lambda connection: cancel_runs(
                    connection, run.thread, CancelAction.INTERRUPT, wired.now_us(), run_ids=[run.run_id]
                )
            )
            wired.notifier.notice(cancelled)


async def _frames(events: AsyncGenerator[Event | None, None], *, with_ids: bool) -> AsyncGenerator[bytes, None]:
    """The events as they are sent, and a heartbeat where none came for a while."""
    loop = asyncio.get_running_loop()
    sent_s = loop.time()
    async with contextlib.aclosing(events):
        async for event in events:
            if event is not None:
                yield frame(event.name, event.data, str(event.place) if with_ids and event.place else None)
            elif loop.time() - sent_s >= HEARTBEAT_S:
                yield HEARTBEAT
            else:
                continue
            sent_s = loop.time()


async def _awaited(
    ticks: AsyncGenerator[None, None], finish: Callable[[], Awaitable[bytes]]
) -> AsyncGenerator[bytes, None]:
    """Blanks while the ticks go on, then the result."""
    loop = asyncio.get_running_loop()
    sent_s = loop.time()
    async with contextlib.aclosing(ticks):
        async for _ in ticks:
            if loop.time() - sent_s >= HEARTBEAT_S:
                yield _BLANK
                sent_s = loop.time()
    yield await finish()
