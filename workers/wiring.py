"""The composition root: the one place that knows every concrete class and builds what a process needs."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from sqlalchemy import Engine

from threadmark import compaction
from threadmark.db import Purpose
from threadmark.memory import Recollection
from threadmark.state import (
    READER_COUNT,
    TURN_READER_COUNT,
    AdvisoryLocks,
    Database,
    FileLocks,
    FoldCache,
    HostLocks,
    Journal,
    Liveness,
    is_sqlite,
    open_engine,
    refuse_transaction_pooling,
    to_us,
)
from threadmark.workers.agents.agent import Registry, RegistryRefused, load_registry
from threadmark.workers.fleet.feed import Feed
from threadmark.workers.fleet.lease import Lease
from threadmark.workers.fleet.local_feed import LocalFeed
from threadmark.workers.fleet.notifier import LocalNotifier, Notifier
from threadmark.workers.fleet.services import Services
from threadmark.workers.fleet.worker import Pace, Worker, new_worker_id
from threadmark.workers.memory_resources import MemorySide, open_memory
from threadmark.workers.models import ChatModel, create_model
from threadmark.workers.pools import UPKEEP
from threadmark.workers.redis.redis_link import Outage
from threadmark.workers.redis.redis_resources import open_side
from threadmark.workers.schema_wait import revision_gaps
from threadmark.workers.settings.settings import Settings
from threadmark.workers.supervisor import Loop, Supervisor
from threadmark.workers.tasks.compaction_job import COMPACT_MANY, compact_many
from threadmark.workers.tasks.compaction_tasks import COMPACT_THREAD, compact_thread
from threadmark.workers.tasks.compaction_triggers import COMPACT_IF_DUE, compact_if_due
from threadmark.workers.tasks.journal_erasure import JournalCopies
from threadmark.workers.tasks.memory_extraction import EXTRACT_MEMORY, extractor_of
from threadmark.workers.tasks.promotion import promote
from threadmark.workers.tasks.task_context import Handler
from threadmark.workers.tasks.task_runner import TaskRunner
from threadmark.workers.tasks.thread_analysis import ANALYSE_THREAD, analyse_thread
from threadmark.workers.telemetry.tracing import tracer_of
from threadmark.workers.tokens import count_tokens

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
        doorbell: Rung after the commit of whatever a worker should see to, whichever process it is in.
        supervisor: Runs the long-lived tasks of this process, and says when one of them ended or is late.
        memory: What keeps `recollection` up; its condition is for `/ready`.
        outages: The parts that Redis plays here, and how often each failed; none without Redis.
    """

    settings: Settings
    database: Database
    journal: Journal
    registry: Registry
    feed: Feed
    services: Services
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

    With Redis, a process with readers is woken for their runs, and a worker takes jobs unless somebody else hands them
    to it (`with_intake`). `task_runner` has handlers of further kinds of tasks. `registry` and `model` take
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
        compactor = compaction.CompactionService(database, now=now, count=count_tokens, fold_cache=journal.fold_cache)
        memory = await stack.enter_async_context(
            open_memory(settings, now, JournalCopies(database, compactor), supervisor)
        )
        services = Services(
            database=database,
            journal=journal,
            registry=registry,
            model=model,
            feed=LocalFeed() if redis is None else redis.feed,
            data_dir=settings.data_dir,
            now=now,
            price=settings.model_price,
            worker_id=new_worker_id(to_us(now())) if with_worker else None,
            recollection=memory.recollection,
            compaction=compactor,
            ledger_words_kept=timedelta(days=settings.ledger_words_days) if settings.ledger_words_days else None,
            tracer=tracer,
        )
        worker = None
        if services.worker_id is not None:
            handlers = {**_task_runner(services), **(task_runner or {})}
            lively = _engine(settings, Purpose.LIVENESS)
            stack.callback(lively.dispose)
            worker = _worker(settings, services, services.worker_id, engine, lively, handlers, supervisor)
        notifier: Notifier = LocalNotifier(worker)
        if redis is not None:
            notifier = redis.connect(worker, notifier, with_readers=with_readers)
        resources = Resources(
            settings=settings,
            database=database,
            journal=services.journal,
            registry=services.registry,
            feed=services.feed,
            services=services,
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
    """Let go now and then of folds that nobody asks for, also in a process that has nothing else to do."""

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


def _task_runner(services: Services) -> dict[str, Handler]:
    """What the tasks of every worker are, by kind."""
    return {
        ANALYSE_THREAD: partial(analyse_thread, services),
        COMPACT_IF_DUE: partial(compact_if_due, services),
        COMPACT_MANY: partial(compact_many, services),
        COMPACT_THREAD: partial(compact_thread, services),
        EXTRACT_MEMORY: extractor_of(services),
        compaction.PROMOTE: partial(promote, services),
    }


def _worker(
    settings: Settings,
    services: Services,
    worker_id: str,
    engine: Engine,
    lively: Engine,
    handlers: Mapping[str, Handler],
    supervisor: Supervisor,
) -> Worker:
    liveness: Liveness = (
        FileLocks(settings.data_dir / "workers")
        if is_sqlite(settings.state_database_url)
        else HostLocks.over(AdvisoryLocks(lively), settings.data_dir / "workers")
    )
    lease = Lease(
        engine,
        liveness,
        worker_id,
        ttl_s=settings.lease_ttl_s,
        heartbeat_s=settings.heartbeat_s,
        stalled_s=lambda: services.database.turns_stalled_s,
    )
    task_runner = TaskRunner(services, lease, worker_id, handlers, sweep_s=settings.sweep_s, supervisor=supervisor)
    return Worker(services, lease, worker_id, Pace(sweep_s=settings.sweep_s), task_runner, supervisor)
