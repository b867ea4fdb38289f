"""Ordering compactions over HTTP: dry, in the background, or waited for."""

import asyncio
import secrets
from collections.abc import Mapping
from functools import partial

import msgspec
from litestar import Response
from sqlalchemy import Connection

from threadmark.app.access import Caller
from threadmark.app.http.body_errors import BodyRefused
from threadmark.app.requests.idempotent_requests import repeatable
from threadmark.app.requests.request_key import RequestKey
from threadmark.app.resources import Resources
from threadmark.app.wire.compactions.compaction_schema import NewCompaction, PolicyBody, ShownCompaction, policy_of
from threadmark.compaction import Compaction, CompactionService, Order, Policy, SummariserKind, named_policy
from threadmark.db.execution.pools import limit_each
from threadmark.state import NotFound, served_routes
from threadmark.state.tasks.task_bounds import check_background_jobs
from threadmark.state.tasks.tasks import find_named
from threadmark.state.threads.thread_numbers import thread_numbers_of
from threadmark.workers.tasks.compaction_job import COMPACT_MANY
from threadmark.workers.tasks.compaction_tasks import COMPACT_THREAD

__all__ = ["background_check", "check_money", "compact", "policy_asked_for", "service_of", "thread_id_of"]

#: How long a request waits for a compaction that another process performs, or that waits for a run (seconds).
WAIT_S = 60.0
POLL_S = 0.1


def service_of(resources: Resources) -> CompactionService:
    """The verbs of compaction. Every process that serves has them."""
    return resources.wired.compactor.service


async def thread_id_of(resources: Resources, number: int) -> str:
    """The id of the thread with this number. Raises NotFound for one that was deleted meanwhile."""

    def query(connection: Connection) -> str:
        thread = thread_numbers_of(connection, number)
        if thread is None:
            raise NotFound("Thread", str(number))
        return thread.thread_id

    return await resources.database.read(query)


def policy_asked_for(connection: Connection, tenant_id: str, asked: PolicyBody | str | None) -> Policy:
    """The policy as it was written, or as the tenant keeps it by this name. Raises BodyRefused for a name of none."""
    if not isinstance(asked, str):
        return policy_of(asked)
    try:
        return named_policy(connection, tenant_id, asked)
    except NotFound as error:
        raise BodyRefused("$.policy", f"there is no compaction policy {asked!r}") from error


def background_check(connection: Connection, resources: Resources, tenant_id: str) -> None:
    """Look whether the tenant may have one more compaction or job in the background. Raises BoundReached."""
    count_max = resources.settings.background_jobs_max
    check_background_jobs(connection, tenant_id, (COMPACT_THREAD, COMPACT_MANY), count_max)


def check_money(resources: Resources, summariser: str, capped: Mapping[str, object]) -> None:
    """Refuse caps in money, by their places in the body, that cannot be enforced. Raises BodyRefused."""
    if SummariserKind(summariser) is not SummariserKind.MODEL or resources.wired.compactor.price is not None:
        return
    for place, cap in capped.items():
        if cap is not None:
            model = resources.settings.model
            raise BodyRefused(place, f"is a cap in money, and THREADMARK_MODEL_PRICES has no price of {model!r}")


async def compact(
    resources: Resources, caller: Caller, thread_id: str, spec: NewCompaction, key: RequestKey | None
) -> Response[bytes]:
    """The outcome of the request: 202 while the compaction is open, 200 once it is over, or for a dry run.

    Raises NotFound, KeyReused, BodyRefused, BoundReached.
    """
    # A key of this route's own: the same Idempotency-Key may belong to another request on another route.
    name = f"http:{secrets.token_hex(16) if key is None else key.key}"

    if not isinstance(spec.policy, str):
        # Refused before its key is taken: the same key may come again with a better one.
        asked = policy_of(spec.policy)
        check_money(resources, spec.summariser, {"$.policy.cost_max": asked.cost_picos_max})

    async def act() -> tuple[int, bytes]:
        policy = await resources.database.read(partial(policy_asked_for, tenant_id=caller.tenant_id, asked=spec.policy))
        check_money(resources, spec.summariser, {"$.policy.cost_max": policy.cost_picos_max})
        order = spec.order(name, f"key:{caller.key_id}", policy)
        if not (spec.dry_run or spec.wait):
            return await ordered(order)
        # Taken before it is ordered: what is refused is not done in the background after all.
        with resources.take_compaction(caller.tenant_id):
            return await previewed(order) if spec.dry_run else await ordered(order)

    async def previewed(order: Order) -> tuple[int, bytes]:
        preview = await resources.wired.compactor.preview(caller.tenant_id, thread_id, order)
        return 200, msgspec.json.encode(ShownCompaction.of_preview(preview, order, thread_id))

    async def ordered(order: Order) -> tuple[int, bytes]:
        check = partial(background_check, resources=resources, tenant_id=caller.tenant_id)
        done, _ = await resources.wired.compactor.order(caller.tenant_id, thread_id, order, check=check)
        if spec.wait:
            done = await _until_over(resources, done)
        else:
            await _ring(resources, done)
        return 202 if done.is_open else 200, msgspec.json.encode(ShownCompaction.of(done, thread_id))

    return await repeatable(resources, caller, key, act)


async def _until_over(resources: Resources, ordered: Compaction) -> Compaction:
    """Perform it here; where another process does, or a run holds the thread, look again until it is over."""
    loop = asyncio.get_running_loop()
    # It waits for others, and asks again and again how far they are.
    limit_each()
    deadline = loop.time() + WAIT_S
    if resources.wired.worker is None:
        await _ring(resources, ordered)
    done = await _further(resources, ordered)
    while done.is_open and loop.time() < deadline and not resources.stopping.is_set():
        await asyncio.sleep(POLL_S)
        done = await _further(resources, ordered)
    return done


async def _further(resources: Resources, ordered: Compaction) -> Compaction:
    """The compaction, performed here if it can be.

    A process without a worker leaves it to those that have one: its own death would go unnoticed until the hold ends.
    """
    if resources.wired.worker is None and bool(await resources.database.read(served_routes)):
        return await service_of(resources).compactions.get(ordered.tenant_id, ordered.compaction_id)
    return await resources.wired.compactor.perform(ordered.compaction_id, ordered.summariser)


async def _ring(resources: Resources, ordered: Compaction) -> None:
    task = await resources.database.read(
        partial(find_named, tenant_id=ordered.tenant_id, kind=COMPACT_THREAD, key=ordered.compaction_id)
    )
    if task is not None:
        resources.wired.notifier.notify_task(task.task_id, task.attempts + 1)
