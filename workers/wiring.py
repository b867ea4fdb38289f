"""The composition root: the one place that knows every concrete class and builds what a process needs."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Engine

from threadmark import compaction
from threadmark.db import Purpose
from threadmark.memory import Recollection
from threadmark.state import (
    READER_COUNT,
    TURN_READER_COUNT,
    Database,
    FoldCache,
    Journal,
    new_id,
    open_engine,
    refuse_transaction_pooling,
    to_us,
)
from threadmark.workers.agents.agent import Registry, RegistryRefused, load_registry
from threadmark.workers.feeds.feed import Feed
from threadmark.workers.feeds.local_feed import LocalFeed
from threadmark.workers.fleet.notifier import LocalNotifier, Notifier
from threadmark.workers.fleet.worker import Worker
from threadmark.workers.memory_resources import MemorySide, open_memory
from threadmark.workers.models import ChatModel, create_model
from threadmark.workers.pools import UPKEEP
from threadmark.workers.redis.redis_link import Outage
from threadmark.workers.redis.redis_resources import open_side
from threadmark.workers.schema_wait import revision_gaps
from threadmark.workers.settings.settings import Settings
from threadmark.workers.supervisor import Loop, Supervisor
from threadmark.workers.tasks.compaction_tasks import Compactor
from threadmark.workers.tasks.journal_erasure import JournalCopies
from threadmark.workers.tasks.task_context import Handler
from threadmark.workers.telemetry.tracing import tracer_of
from threadmark.workers.tokens import count_tokens
from threadmark.workers.turn.turn_parts import TurnParts
from threadmark.workers.worker_parts import beating_of, new_lease, new_worker

__all__ = ["Resources", "SchemaBehind", "now_utc", "open_resources"]


#: How often a process looks for folds to let go of (seconds).
FOLD_CACHE_SWEEP_S = 15.0


class SchemaBehind(RuntimeError):
    """The state database has not been migrated to what this code needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a process has open.

    Attributes:
        worker: None in a process that only serves HTTP.
        notifier: Notifies workers, in any process, after the commit of work for a worker.
        supervisor: Runs the long-lived tasks of this process, and says when one of them ended or is late.
        memory: What keeps `recollection` up; its condition is for `/ready`.
        outages: The parts that Redis plays here, and how often each failed; none without Redis.
    """

    settings: Settings
    database: Database
    journal: Journal
    registry: Registry
    feed: Feed
    compactor: Compactor
    worker: Worker | None
    notifier: Notifier
    outages: tuple[Outage, ...]
    memory: MemorySide
    supervisor: Supervisor
    now: Callable[[], datetime]

    @property
    def recollection(self) -> Recollection:
        """Memory; its calls raise `threadmark.memory.Unavailable` while it is down."""
        return self.memory.recollection

    def now_us(self) -> int:
        """The process's clock, in epoch microseconds."""
        return to_us(self.now())


def now_utc() -> datetime:
    """The clock of this process."""
    return datetime.now(UTC)


@asynccontextmanager
async def open_resources(
    settings: Settings,
    *,
    with_worker: bool,
    with_readers: bool = True,
    with_intake: bool = True,
    task_runner: Mapping[str, Handler] | None = None,
    now: Callable[[], datetime] = now_utc,
    registry: Registry | None = None,
    model: ChatModel | None = None,
) -> AsyncIterator[Resources]:
    """Open everything, and close it again in the right order.

    Raises SchemaBehind, SessionsNotKept or RegistryRefused before anything is served.

    With Redis, a process with readers is woken for their runs, and a worker takes jobs unless another part
    hands them to it (`with_intake`). `task_runner` has handlers of further kinds of tasks. `registry` and `model` take
    the places of those that the settings name.
    """
    async with AsyncExitStack() as stack:
        engine = _engine(settings, Purpose.LEASE)
        stack.callback(engine.dispose)
        refuse_transaction_pooling(engine)
        _check_schema(engine)
        database = Database.open(
            settings.state_database_url,
            reader_count=READER_COUNT if with_readers else TURN_READER_COUNT,
            limits=settings.limits,
        )
        stack.push_async_callback(database.close)
        journal = Journal(database, FoldCache(settings.folds_mib * 1024 * 1024))
        supervisor = Supervisor()
        await stack.enter_async_context(_letting_go(journal.fold_cache, supervisor))
        registry = registry or load_registry(settings.agents, search=Path.cwd())
        _check_prices(registry, settings)
        model = model or create_model(
            model=settings.model, api_key=settings.openai_api_key, base_url=settings.openai_base_url
        )
        stack.push_async_callback(model.close)
        redis = (
            await stack.enter_async_context(open_side(settings.redis_url, supervisor)) if settings.redis_url else None
        )
        tracer = tracer_of(settings)
        if tracer is not None:
            stack.push_async_callback(UPKEEP.run, tracer.close)
        service = compaction.CompactionService(
            database, now=now, count=count_tokens, fold_cache=journal.fold_cache, beating=beating_of(settings)
        )
        memory = await stack.enter_async_context(
            open_memory(settings, now, JournalCopies(database, service), supervisor)
        )
        feed: Feed = LocalFeed() if redis is None else redis.feed
        worker_id = _new_worker_id(to_us(now())) if with_worker else None
        compactor = Compactor(service=service, model=model, now=now, price=settings.model_price, worker_id=worker_id)
        worker = None
        if worker_id is not None:
            parts = TurnParts(
                database=database,
                journal=journal,
                model=model,
                feed=feed,
                data_dir=settings.data_dir,
                now=now,
                recollection=memory.recollection,
                compactor=compactor,
                tracer=tracer,
            )
            lively = _engine(settings, Purpose.LIVENESS)
            stack.callback(lively.dispose)
            lease = new_lease(settings, database, worker_id, engine, lively)
            worker = new_worker(settings, parts, registry, lease, worker_id, compactor, task_runner or {}, supervisor)
        notifier: Notifier = LocalNotifier(worker)
        if redis is not None:
            notifier = redis.connect(worker, notifier, with_readers=with_readers)
        resources = Resources(
            settings=settings,
            database=database,
            journal=journal,
            registry=registry,
            feed=feed,
            compactor=compactor,
            worker=worker,
            notifier=notifier,
            outages=() if redis is None else redis.outages,
            memory=memory,
            supervisor=supervisor,
            now=now,
        )
        if worker is not None:
            await worker.start()
            stack.push_async_callback(_stop, worker, notifier)
        if worker is not None and redis is not None and with_intake:
            await stack.enter_async_context(redis.intake(worker))
        yield resources


@asynccontextmanager
async def _letting_go(fold_cache: FoldCache, supervisor: Supervisor) -> AsyncIterator[None]:
    """Evict unused folds now and then, also in a process that has nothing else to do."""

    async def sweep(loop: Loop) -> None:
        while True:
            fold_cache.forget()
            loop.completed()
            await asyncio.sleep(FOLD_CACHE_SWEEP_S)

    sweeping = supervisor.start("fold cache", sweep)
    try:
        yield
    finally:
        await supervisor.stop(sweeping)


async def _stop(worker: Worker, notifier: Notifier) -> None:
    for run_id, attempt in await worker.stop():
        notifier.notify(run_id, attempt)
    for task_id, attempt in worker.task_runner.released:
        notifier.notify_task(task_id, attempt)


def _engine(settings: Settings, purpose: Purpose) -> Engine:
    return open_engine(settings.state_database_url, write=True, limits=settings.limits, purpose=purpose)


def _check_schema(engine: Engine) -> None:
    found = revision_gaps(engine)
    if found:
        raise SchemaBehind(f"the state database is behind ({'; '.join(found)}): run `threadmark migrate`")


def _check_prices(registry: Registry, settings: Settings) -> None:
    for agent in registry:
        if agent.compaction is not None and agent.compaction.needs_price and settings.model_price is None:
            raise RegistryRefused(
                f"agent {agent.name!r} has a cap in money (cost_max of its compaction policy), and "
                f"THREADMARK_MODEL_PRICES has no price of {settings.model!r}: add one, or take the cap away"
            )


def _new_worker_id(now_us: int) -> str:
    """A name that says where the worker runs; unique."""
    host = "".join(each if each.isalnum() else "-" for each in socket.gethostname())[:32]
    return f"{host}-{os.getpid()}-{new_id(now_us)[-12:]}"
