"""What the turns of a process are taken with; a turn hands each of its steps the parts which that step uses."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from threadmark.memory import Recollection
from threadmark.state import Database, Journal, to_us
from threadmark.workers.feeds.feed import Feed
from threadmark.workers.models import ChatModel
from threadmark.workers.tasks.compaction_tasks import Compactor
from threadmark.workers.telemetry.tracing import Tracer

__all__ = ["REPLAY_COUNT_MAX", "TurnParts"]

#: Journals read and folded at once: after a crash hundreds of runs come back together, and heartbeats must not wait.
REPLAY_COUNT_MAX = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnParts:
    """The parts of a turn. Of them all, only `Turn` knows this class.

    Attributes:
        recollection: Its calls raise `threadmark.memory.Unavailable` while memory is down; None where there is none.
        compactor: None where nothing is compacted.
    """

    database: Database
    journal: Journal
    model: ChatModel
    feed: Feed
    data_dir: Path
    now: Callable[[], datetime]
    recollection: Recollection | None = None
    compactor: Compactor | None = None
    tracer: Tracer | None = None
    replays: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(REPLAY_COUNT_MAX))
    task_signal: asyncio.Event = field(default_factory=asyncio.Event)  #: set after a commit that added a task
    chance: Callable[[], float] = field(default=random.random)  #: in [0, 1): the jitter of back-offs

    def now_us(self) -> int:
        """The worker's clock, in epoch microseconds."""
        return to_us(self.now())
