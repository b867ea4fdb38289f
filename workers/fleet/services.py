"""What every turn of a worker needs, built once by the wiring."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from threadmark.compaction import CompactionService, Price
from threadmark.memory import Recollection
from threadmark.state import Database, Journal, to_us
from threadmark.workers.agents.agent import Registry
from threadmark.workers.fleet.feed import Feed
from threadmark.workers.models.client import ChatModel
from threadmark.workers.telemetry.tracing import Tracer

__all__ = ["REPLAY_COUNT_MAX", "Services"]


#: Journals read and folded at once: after a crash hundreds of runs come back together, and heartbeats must not wait.
REPLAY_COUNT_MAX = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Database, agents, models and clock of one worker process.

    Attributes:
        recollection: Its calls raise `threadmark.memory.Unavailable` while memory is down; None in a process that has
        no memory. compaction: None in a process that compacts nothing.
        price: What `model` costs; None: nobody said, and nothing that has a cap in money is made by it.
        worker_id: The worker of this process; None in one that only serves HTTP.
    """

    database: Database
    journal: Journal
    registry: Registry
    model: ChatModel
    feed: Feed
    data_dir: Path
    now: Callable[[], datetime]
    worker_id: str | None = None
    price: Price | None = None
    recollection: Recollection | None = None
    compaction: CompactionService | None = None
    ledger_words_kept: timedelta | None = None  #: None: for ever
    tracer: Tracer | None = None
    replays: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(REPLAY_COUNT_MAX))
    task_signal: asyncio.Event = field(default_factory=asyncio.Event)  #: set after a commit that added a task
    chance: Callable[[], float] = field(default=random.random)  #: in [0, 1): the jitter of back-offs

    def now_us(self) -> int:
        """The worker's clock, in epoch microseconds."""
        return to_us(self.now())
