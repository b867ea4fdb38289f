"""Compacting beside the event loop: accounts take processor time that heartbeats need."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import suppress
from functools import partial
from types import coroutine
from typing import Any

from threadmark.compaction.input.analysis import Analyses
from threadmark.compaction.policy.paid_replies import PaidReplies
from threadmark.compaction.pools import COMPACTING
from threadmark.compaction.run.compact import compact
from threadmark.compaction.run.proposal import Aborted, CompactionRequest, Proposal
from threadmark.compaction.summary import SummaryPrompt, SummaryReply, TokenCounter
from threadmark.db.execution.pools import check_wanted

__all__ = ["compact_in_executor"]

#: What the work asks of the loop that it was begun from.
Call = Callable[[], Awaitable[Any]]


class _Across:
    """A summariser that is asked on the loop from which the work was begun."""

    def __init__(self, summariser: PaidReplies) -> None:
        self._summariser = summariser

    async def summarise(self, prompt: SummaryPrompt) -> SummaryReply:
        """The reply, from the other side."""
        reply: SummaryReply = await _ask(partial(self._summariser.summarise, prompt))
        return reply

    async def admit(self, prompts: Sequence[SummaryPrompt]) -> None:
        """Whether the draft may begin, from the other side."""
        await _ask(partial(self._summariser.admit, prompts))


@coroutine
def _ask(call: Call) -> Generator[Call, Any, Any]:
    """Hand the call to the driver of the work, and go on with its result."""
    return (yield call)


async def compact_in_executor(
    request: CompactionRequest, analyses: Analyses, summariser: PaidReplies | None, count: TokenCounter
) -> Proposal | Aborted:
    """`compact`, in threads for it, none of which is held while the summariser answers on the caller's loop.

    A caller that is cancelled leaves nothing behind: no model is asked any more, and the work ends at its next
    text, unit or count.
    """

    def counted(text: str) -> int:
        check_wanted()
        return count(text)

    across = None if summariser is None else _Across(summariser)
    work = compact(request, analyses, across, counted, None if across is None else across.admit)
    step: Callable[[], Call] = partial(work.send, None)
    try:
        while True:
            asked = await COMPACTING.run(partial(_until_it_asks, step))
            if isinstance(asked, Proposal | Aborted):
                return asked
            step = await _answered(work, asked)
    except asyncio.CancelledError:
        # A thread that is still in it refuses, and lets go of it when it ends.
        with suppress(ValueError):
            work.close()
        raise


def _until_it_asks(step: Callable[[], Call]) -> Call | Proposal | Aborted:
    """Go on with the work until it asks for something, or is done: what it asks for, or what it made."""
    try:
        return step()
    except StopIteration as done:
        made: Proposal | Aborted = done.value
        return made


async def _answered(work: Coroutine[Call, Any, Proposal | Aborted], call: Call) -> Callable[[], Call]:
    """The next step of the work: with what the call returned, or with what it raised."""
    try:
        answer = await call()
    except Exception as error:
        return partial(work.throw, error)
    return partial(work.send, answer)
