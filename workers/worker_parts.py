"""What a worker is made of: its lease, the handlers of its tasks, its housekeeping. The wiring opens what they use."""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import partial

from sqlalchemy import Engine

from threadmark import compaction
from threadmark.state import AdvisoryLocks, Database, FileLocks, HostLocks, Liveness, is_sqlite
from threadmark.workers.agents.agent import Registry
from threadmark.workers.fleet.housekeeping import tidy
from threadmark.workers.fleet.lease import Lease
from threadmark.workers.fleet.task_runner import TaskRunner
from threadmark.workers.fleet.worker import Pace, Worker
from threadmark.workers.settings.settings import Settings
from threadmark.workers.supervisor import Supervisor
from threadmark.workers.tasks.compaction_job import COMPACT_MANY, compact_many
from threadmark.workers.tasks.compaction_tasks import COMPACT_THREAD, Compactor, compact_thread
from threadmark.workers.tasks.compaction_triggers import COMPACT_IF_DUE, compact_if_due
from threadmark.workers.tasks.memory_extraction import EXTRACT_MEMORY, MemoryExtraction
from threadmark.workers.tasks.promotion import Promotions
from threadmark.workers.tasks.task_context import Handler
from threadmark.workers.tasks.thread_analysis import ANALYSE_THREAD, analyse_thread
from threadmark.workers.turn.turn_parts import TurnParts

__all__ = ["beating_of", "new_lease", "new_worker"]

#: The folder of the data directory in which the workers of a host keep their locks.
LOCKS_FOLDER = "workers"


def beating_of(settings: Settings) -> Callable[[Iterable[str]], list[str]]:
    """Which workers live although SQLite's write lock keeps them from renewing; on PostgreSQL no lock does."""
    if is_sqlite(settings.state_database_url):
        return FileLocks(settings.data_dir / LOCKS_FOLDER).beating
    return lambda _: []


def new_lease(settings: Settings, database: Database, worker_id: str, engine: Engine, lively: Engine) -> Lease:
    """A lease that has not begun. It renews by `engine`; `lively` keeps the session that shows that it lives."""
    folder = settings.data_dir / LOCKS_FOLDER
    liveness: Liveness = (
        FileLocks(folder) if is_sqlite(settings.state_database_url) else HostLocks.over(AdvisoryLocks(lively), folder)
    )
    return Lease(
        engine,
        liveness,
        worker_id,
        ttl_s=settings.lease_ttl_s,
        heartbeat_s=settings.heartbeat_s,
        stalled_s=lambda: database.turns_stalled_s,
    )


def new_worker(
    settings: Settings,
    parts: TurnParts,
    registry: Registry,
    lease: Lease,
    worker_id: str,
    compactor: Compactor,
    handlers: Mapping[str, Handler],
    supervisor: Supervisor,
) -> Worker:
    """A worker that has not started. `handlers` do further kinds of tasks, or take the places of those that it has."""
    runner = TaskRunner(
        parts.database,
        lease,
        worker_id,
        {**_task_handlers(parts, registry, compactor), **handlers},
        sweep_s=settings.sweep_s,
        supervisor=supervisor,
        bell=parts.task_signal,
    )
    ledger_words_kept = timedelta(days=settings.ledger_words_days) if settings.ledger_words_days else None

    async def tidy_up() -> None:
        await tidy(
            parts.now_us(),
            database=parts.database,
            compaction=compactor.service,
            ledger_words_kept=ledger_words_kept,
        )

    pace = Pace(sweep_s=settings.sweep_s)
    return Worker(parts, registry, lease, worker_id, pace, runner, supervisor, tidy_up)


def _task_handlers(parts: TurnParts, registry: Registry, compactor: Compactor) -> dict[str, Handler]:
    """What does the tasks of every worker, by kind."""
    database, journal, recollection, now = parts.database, parts.journal, parts.recollection, parts.now
    extraction = MemoryExtraction(
        database=database, journal=journal, registry=registry, recollection=recollection, model=parts.model, now=now
    )
    promotions = Promotions(database=database, journal=journal, registry=registry, recollection=recollection, now=now)
    return {
        ANALYSE_THREAD: partial(
            analyse_thread, database=database, journal=journal, registry=registry, compaction=compactor.service
        ),
        COMPACT_IF_DUE: partial(
            compact_if_due,
            database=database,
            registry=registry,
            compactor=compactor,
            on_ordered=parts.task_signal.set,
        ),
        COMPACT_MANY: partial(compact_many, database=database, compactor=compactor),
        COMPACT_THREAD: partial(compact_thread, compactor=compactor),
        EXTRACT_MEMORY: extraction.extract,
        compaction.PROMOTE: promotions.deliver,
    }
