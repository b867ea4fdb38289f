"""Compacting beside the event loop: accounts take processor time that heartbeats need."""

import asyncio
from collections.abc import Sequence

from compaction.analysis import Analyses
from compaction.compact import compact
from compaction.paying import PaidReplies
from compaction.proposal import Aborted, CompactionRequest, Proposal
from compaction.summary import SummaryPrompt, SummaryReply, TokenCounter

__all__ = ["compact_beside"]


class _Across:
    """A summariser that is asked from a loop of another thread, and answers on its own."""

    def __init__(self, summariser: PaidReplies, home: asyncio.AbstractEventLoop) -> None:
        self._summariser, self._home = summariser, home

    async def summarise(self, prompt: SummaryPrompt) -> SummaryReply:
        """The reply, from the other side."""
        asked = asyncio.run_coroutine_threadsafe(self._summariser.summarise(prompt), self._home)
        return await asyncio.wrap_future(asked)

    async def admit(self, prompts: Sequence[SummaryPrompt]) -> None:
        """Whether the draft may begin, from the other side."""
        asked = asyncio.run_coroutine_threadsafe(self._summariser.admit(prompts), self._home)
        return await asyncio.wrap_future(asked)


async def compact_beside(
    request: CompactionRequest, analyses: Analyses, summariser: PaidReplies | None, count: TokenCounter
) -> Proposal | Aborted:
    """`compact`, in a thread of its own; the summariser is asked on the caller's loop and cancelled with it."""
    across = None if summariser is None else _Across(summariser, asyncio.get_running_loop())
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Proposal | Aborted]]] = []

    async def work() -> Proposal | Aborted:
        admit = None if across is None else across.admit
        task = asyncio.ensure_future(compact(request, analyses, across, count, admit))
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
