"""Compacting beside the event loop: accounts take processor time that heartbeats need."""

import asyncio
from collections.abc import Awaitable, Callable

from compaction.analysis import Analyses
from compaction.compact import compact
from compaction.proposal import Aborted, CompactionRequest, Proposal
from compaction.summary import Summariser, SummaryPrompt, SummaryReply, TokenCounter

__all__ = ["KeptReplies", "compact_beside"]


class KeptReplies:
    """A summariser that asks for no chunk twice: what an earlier attempt was told is told again."""

    def __init__(
        self,
        summariser: Summariser,
        known: Callable[[], Awaitable[dict[str, SummaryReply]]],
        keep: Callable[[str, SummaryReply], Awaitable[None]],
    ) -> None:
        self._summariser, self._read, self._keep = summariser, known, keep
        self._known: dict[str, SummaryReply] | None = None

    async def summarise(self, prompt: SummaryPrompt) -> SummaryReply:
        """The reply to this very prompt, kept before anything is made of it. Raises SummariserFailed."""
        if self._known is None:
            self._known = await self._read()
        reply = self._known.get(prompt.key)
        if reply is None:
            reply = await self._summariser.summarise(prompt)
            await self._keep(prompt.key, reply)
            self._known[prompt.key] = reply
        return reply


class _Across:
    """A summariser that is asked from a loop of another thread, and answers on its own."""

    def __init__(self, summariser: Summariser, home: asyncio.AbstractEventLoop) -> None:
        self._summariser, self._home = summariser, home

    async def summarise(self, prompt: SummaryPrompt) -> SummaryReply:
        """The reply, from the other side."""
        asked = asyncio.run_coroutine_threadsafe(self._summariser.summarise(prompt), self._home)
        return await asyncio.wrap_future(asked)


async def compact_beside(
    request: CompactionRequest, analyses: Analyses, summariser: Summariser | None, count: TokenCounter
) -> Proposal | Aborted:
    """`compact`, in a thread of its own; the summariser is asked on the caller's loop and cancelled with it."""
    across = None if summariser is None else _Across(summariser, asyncio.get_running_loop())
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Proposal | Aborted]]] = []

    async def work() -> Proposal | Aborted:
        task = asyncio.ensure_future(compact(request, analyses, across, count))
        begun.append((asyncio.get_running_loop(), task))
        return await task

    try:
        return await asyncio.to_thread(asyncio.run, work())
    except asyncio.CancelledError:
        # The thread goes on by itself; what it waits for is cancelled, so that no model is asked for nobody.
        for loop, task in begun:
            if not loop.is_closed():
                loop.call_soon_threadsafe(task.cancel)
        raise
