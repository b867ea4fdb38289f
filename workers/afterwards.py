"""The background work that a run leaves when it ends."""

from collections.abc import Iterator

from state import Run
from state.tasks import NewTask
from workers.agents import ChatAgent
from workers.compacting_later import compactions_after
from workers.extracting import extraction_of

__all__ = ["tasks_after"]


def tasks_after(agent: ChatAgent, run: Run, now_us: int) -> Iterator[NewTask]:
    """What is to be remembered of it, and the compactions that its thread may need now."""
    extraction = extraction_of(agent, run)
    if extraction is not None:
        yield extraction
    yield from compactions_after(agent, run, now_us)
