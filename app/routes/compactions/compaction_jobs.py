"""Compaction of many threads at once: begun, followed, paused, resumed, cancelled."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import partial

import msgspec
from litestar import Response, get, post
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, JSONBody
from msgspec import Struct
from sqlalchemy import Connection

from threadmark.app.access import Caller, Scope, needs
from threadmark.app.http.path_ids import uuid_of
from threadmark.app.listing.cursors import Cursor, Listing
from threadmark.app.listing.pages import PAGE_SIZE, CursorText, PageSize, cut
from threadmark.app.requests import dependencies
from threadmark.app.requests.answers import json_answer
from threadmark.app.requests.request_key import replay
from threadmark.app.resources import Resources
from threadmark.app.runs.compaction_request import (
    background_check,
    check_money,
    policy_asked_for,
    service_of,
    thread_id_of,
)
from threadmark.app.sse.framing import HEARTBEAT, frame
from threadmark.app.sse.live_response import LiveResponse
from threadmark.app.wire.compactions.compaction_job_schema import NewCompactionJob, ShownJob
from threadmark.app.wire.compactions.compaction_outlook_schema import outlook_to_wire
from threadmark.app.wire.compactions.compaction_schema import ShownCompaction
from threadmark.compaction import Order, SummariserKind, Trigger, open_purse
from threadmark.state import NotFound, Reply, new_id
from threadmark.state.tasks.task_pauses import pause_task, resume_task
from threadmark.state.tasks.tasks import NewTask, Task, TaskStatus, add_task, cancel_task, get_task, list_tasks
from threadmark.state.threads.receipts import look_up, record
from threadmark.workers.tasks.compaction_job import COMPACT_MANY, JobPayload, key_prefix

__all__ = ["ROUTES", "JobPage", "JobThreads"]

JOB = {202: ResponseSpec(ShownJob, description="The job, as it begins.", generate_examples=False)}
EVENTS = {
    200: ResponseSpec(str, description="`progress` after each change, then `end`.", media_type="text/event-stream")
}
POLL_S, HEARTBEAT_S = 0.25, 15.0
OVER = frozenset({TaskStatus.DONE, TaskStatus.FAILED, TaskStatus.CANCELLED})


class JobPage(Struct):
    """Jobs, newest first, and the cursors to the pages beside."""

    items: list[ShownJob]
    next: str | None
    previous: str | None


class JobThreads(Struct):
    """The outcome of each thread so far, in the order of their ids, and the cursor to the next page."""

    items: list[ShownCompaction]
    next: str | None


@post("/admin/compaction-jobs", opt=needs(Scope.ADMIN), status_code=202, responses=JOB)
async def create_job(
    data: JSONBody[NewCompactionJob],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    request_key: dependencies.RequestKey,
) -> Response[bytes]:
    """Compact the threads of the tenant that a filter names, in the background."""
    receipt = None if request_key is None else request_key.receipt(_answer)
    now_us = resources.wired.now_us()

    def unit(connection: Connection) -> Task | Reply:
        if (reply := look_up(connection, caller.tenant_id, receipt, now_us=now_us)) is not None:
            return reply
        background_check(connection, resources, caller.tenant_id)
        policy = policy_asked_for(connection, caller.tenant_id, data.policy)
        caps = {"$.cost_max": data.cost_max, "$.policy.cost_max": policy.cost_picos_max}
        check_money(resources, data.summariser, caps)
        has_purse = (
            SummariserKind(data.summariser) is SummariserKind.MODEL and resources.wired.compactor.price is not None
        )
        payload = data.payload(f"key:{caller.key_id}", policy, has_purse=has_purse)
        new = NewTask(
            tenant_id=caller.tenant_id, kind=COMPACT_MANY, key=new_id(now_us), payload=msgspec.to_builtins(payload)
        )
        task = add_task(connection, new, now_us)
        if has_purse:
            open_purse(connection, task.task_id, caller.tenant_id, data.cost_picos_max)
        record(connection, caller.tenant_id, receipt, task)
        return task

    made = await resources.database.write(unit)
    if isinstance(made, Reply):
        return replay(made)
    resources.wired.notifier.notify_task(made.task_id, made.attempts + 1)
    return json_answer(ShownJob.of(made), status_code=202)


@get("/admin/compaction-jobs", opt=needs(Scope.ADMIN))
async def list_jobs(
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    signer: dependencies.CursorSigner,
    limit: PageSize = PAGE_SIZE,
    cursor: CursorText = None,
) -> JobPage:
    """The tenant's jobs, newest first."""
    listing = Listing(caller.tenant_id, "compaction-jobs", {})
    place = None if cursor is None else signer.verify(cursor, listing)
    found = await resources.database.read(
        partial(
            list_tasks,
            tenant_id=caller.tenant_id,
            kind=COMPACT_MANY,
            count_max=limit + 1,
            around=None if place is None else int(place.position[0]),
            backward=place is not None and place.backward,
        )
    )
    page = cut(found, limit, place, lambda task: (task.number,))
    return JobPage(
        items=[ShownJob.of(task) for task in page.rows],
        next=None if page.next is None else signer.sign(page.next, listing),
        previous=None if page.previous is None else signer.sign(page.previous, listing),
    )


@get("/admin/compaction-jobs/{job_id:str}", opt=needs(Scope.ADMIN))
async def read_job(job_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources) -> ShownJob:
    """The progress of the job, and its outcomes."""
    return ShownJob.of(await _job(resources, caller, job_id))


@get("/admin/compaction-jobs/{job_id:str}/threads", opt=needs(Scope.ADMIN))
async def list_job_threads(
    job_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    signer: dependencies.CursorSigner,
    limit: PageSize = PAGE_SIZE,
    cursor: CursorText = None,
) -> JobThreads:
    """The compactions of the job, one for each thread it came to; those of a dry run are what it found."""
    job = await _job(resources, caller, job_id)
    listing = Listing(caller.tenant_id, "compaction-job-threads", {"job_id": job.task_id})
    after = "" if cursor is None else str(signer.verify(cursor, listing).position[0])
    payload = msgspec.convert(job.payload, JobPayload)
    if payload.dry_run:
        seen = await service_of(resources).compactions.outlooks(job.task_id, after_id=after, count_max=limit + 1)
        order = Order(
            key="",
            policy=payload.policy,
            trigger=Trigger.BULK,
            summariser=payload.summariser,
            requested_by=payload.requested_by,
        )
        end = seen[limit - 1].thread_id if len(seen) > limit else None
        return JobThreads(
            items=[outlook_to_wire(each, order) for each in seen[:limit]],
            next=None if end is None else signer.sign(Cursor((end,)), listing),
        )
    found = await service_of(resources).compactions.keyed(
        caller.tenant_id, key_prefix(job.task_id), after_key=after, count_max=limit + 1
    )
    last = found[limit - 1].key if len(found) > limit else None
    return JobThreads(
        items=[ShownCompaction.of(each, await thread_id_of(resources, each.thread)) for each in found[:limit]],
        next=None if last is None else signer.sign(Cursor((last,)), listing),
    )


@get("/admin/compaction-jobs/{job_id:str}/events", opt=needs(Scope.ADMIN), responses=EVENTS)
async def follow_job(
    job_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources
) -> LiveResponse:
    """The job as it goes on, as server-sent events, until it is over."""
    with resources.take_stream(caller.tenant_id) as seat:
        job = await _job(resources, caller, job_id)
        return LiveResponse(
            _events(resources, job),
            until=partial(_stopping, resources),
            headers={},
            media_type="text/event-stream",
            seat=seat.kept(),
        )


@post("/admin/compaction-jobs/{job_id:str}/pause", opt=needs(Scope.ADMIN), status_code=200)
async def pause_job(job_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources) -> ShownJob:
    """Let the job rest. Threads that are being compacted are left as they are, and compacted when it goes on."""
    return await _change(resources, caller, job_id, pause_task)


@post("/admin/compaction-jobs/{job_id:str}/resume", opt=needs(Scope.ADMIN), status_code=200)
async def resume_job(job_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources) -> ShownJob:
    """Have a paused job go on where it stopped."""
    shown = await _change(resources, caller, job_id, resume_task)
    resources.wired.notifier.notify_task(shown.job_id, shown.attempts + 1)
    return shown


@post("/admin/compaction-jobs/{job_id:str}/cancel", opt=needs(Scope.ADMIN), status_code=200)
async def cancel_job(job_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources) -> ShownJob:
    """End the job. Threads that were compacted stay so; each can be restored."""
    return await _change(resources, caller, job_id, cancel_task)


async def _job(resources: Resources, caller: Caller, job_id: str) -> Task:
    wanted = uuid_of("job", job_id)
    return await resources.database.read(partial(_found, tenant_id=caller.tenant_id, job_id=wanted))


def _found(connection: Connection, tenant_id: str, job_id: str) -> Task:
    try:
        task = get_task(connection, job_id, tenant_id=tenant_id)
    except NotFound:
        raise NotFound("Compaction job", job_id) from None
    if task.kind != COMPACT_MANY:
        raise NotFound("Compaction job", job_id)
    return task


async def _change(
    resources: Resources, caller: Caller, job_id: str, change: Callable[[Connection, str], Task]
) -> ShownJob:
    wanted = uuid_of("job", job_id)

    def unit(connection: Connection) -> Task:
        _found(connection, caller.tenant_id, wanted)
        return change(connection, wanted)

    task = await resources.database.write(unit)
    resources.wired.notifier.notice([task.task_id])
    return ShownJob.of(task)


async def _events(resources: Resources, job: Task) -> AsyncGenerator[bytes, None]:
    loop = asyncio.get_running_loop()
    sent, sent_at = b"", loop.time()
    while True:
        found = await resources.database.read(partial(get_task, task_id=job.task_id))
        body = msgspec.json.encode(ShownJob.of(found))
        if body != sent:
            yield frame("progress", body, None)
            sent, sent_at = body, loop.time()
        elif loop.time() - sent_at > HEARTBEAT_S:
            yield HEARTBEAT
            sent_at = loop.time()
        if found.status in OVER:
            yield frame("end", body, None)
            return
        await asyncio.sleep(POLL_S)


async def _stopping(resources: Resources) -> None:
    await resources.stopping.wait()


def _answer(task: Task) -> tuple[int, bytes]:
    return 202, msgspec.json.encode(ShownJob.of(task))


ROUTES = [
    create_job,
    list_jobs,
    read_job,
    list_job_threads,
    follow_job,
    pause_job,
    resume_job,
    cancel_job,
]
