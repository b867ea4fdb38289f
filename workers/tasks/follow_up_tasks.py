"""The background work that a run leaves when it ends."""

from collections.abc import Iterator

from threadmark.state import Run
from threadmark.state.tasks.tasks import NewTask
from threadmark.workers.agents.agent import ChatAgent
from threadmark.workers.tasks.compaction_triggers import compactions_after
from threadmark.workers.tasks.memory_extraction import extraction_of
from threadmark.workers.tasks.thread_analysis import analysis_after

__all__ = ["tasks_after"]


def tasks_after(agent: ChatAgent, run: Run, now_us: int) -> Iterator[NewTask]:
    """What is to be remembered of it, the analysis of its thread, and the compactions that this may need now."""
    extraction = extraction_of(agent, run)
    if extraction is not None:
        yield extraction
    yield from analysis_after(agent, run)
    yield from compactions_after(agent, run, now_us)
