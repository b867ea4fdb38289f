"""Threads: make, find, label, copy, delete."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

import msgspec
from litestar import Response, delete, get, patch, post
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, HeaderParameter, JSONBody
from sqlalchemy import Connection

from threadmark.app.access import Scope, needs
from threadmark.app.http.body_errors import BodyRefused
from threadmark.app.http.path_ids import uuid_of
from threadmark.app.http.problem import MEDIA_TYPE
from threadmark.app.listing.cursors import Listing
from threadmark.app.listing.pages import Page, cut
from threadmark.app.requests import dependencies
from threadmark.app.requests.answers import once
from threadmark.app.resources import Resources
from threadmark.app.runs.thread_state import stand
from threadmark.app.wire.conversations.state_schema import Moment
from threadmark.app.wire.conversations.thread_schema import (
    Labels,
    NewThread,
    ShownThread,
    ThreadCount,
    ThreadSearch,
    chosen,
    thread_to_wire,
)
from threadmark.app.wire.selected import selected
from threadmark.compaction import forget_thread, remove_thread_rows
from threadmark.state import (
    Deletion,
    Receipt,
    Reply,
    Thread,
    copy_thread,
    count_threads,
    delete_thread,
    finish_deletions,
    get_thread,
    label_thread,
    open_thread,
    remove_deleted,
    replied,
    search_threads,
    sort_key,
)

__all__ = ["ROUTES"]

_SHOWN = {200: ResponseSpec(ShownThread, description="The thread.", generate_examples=False)}
_LABELLED = {**_SHOWN, 204: ResponseSpec(None, description="`Prefer: return=minimal`: it is done.")}
_FOUND = {200: ResponseSpec(selected(ShownThread), description="Threads.", generate_examples=False)}
Prefer = Annotated[
    str | None, HeaderParameter(name="Prefer", description="`return=minimal`: answer 204 without the thread.")
]


@post("/threads", opt=needs(Scope.RUN), status_code=200, responses=_SHOWN)
async def create_thread(
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    request_key: dependencies.RequestKey,
    data: JSONBody[NewThread | None] = None,
) -> Response[bytes]:
    """Make a thread. One that exists is 409, or with `if_exists: do_nothing` the answer."""
    spec = data or NewThread()
    thread_id = None if spec.thread_id is None else uuid_of("thread", spec.thread_id)

    def unit(connection: Connection) -> Thread | Reply:
        return open_thread(
            connection,
            tenant_id=caller.tenant_id,
            thread_id=thread_id,
            metadata=spec.metadata or {},
            keep_existing=spec.if_exists == "do_nothing",
            receipt=None if request_key is None else request_key.receipt(partial(_made, resources, connection)),
            now_us=resources.wired.now_us(),
        )

    return await _made_or_replayed(resources, unit)


@get("/threads/{thread_id:str}", opt=needs(Scope.READ), responses=_SHOWN)
async def read_thread(
    thread_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources
) -> Response[bytes]:
    """The thread, with its values and open questions."""
    wanted = uuid_of("thread", thread_id)
    return once(
        await resources.database.read(lambda connection: _shown(resources, connection, caller.tenant_id, wanted))
    )


@patch("/threads/{thread_id:str}", opt=needs(Scope.RUN), responses=_LABELLED)
async def update_thread(
    thread_id: FromPath[str],
    data: JSONBody[Labels],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    prefer: Prefer = None,
) -> Response[bytes]:
    """Merge metadata into the thread, key by key."""
    wanted, now_us = uuid_of("thread", thread_id), resources.wired.now_us()

    def unit(connection: Connection) -> None:
        thread = get_thread(connection, caller.tenant_id, wanted)
        label_thread(connection, thread.number, data.metadata or {}, now_us=now_us)

    await resources.database.write(unit)
    if prefer is not None and prefer.strip().lower() == "return=minimal":
        return Response(b"", status_code=204)
    return once(
        await resources.database.read(lambda connection: _shown(resources, connection, caller.tenant_id, wanted))
    )


@delete("/threads/{thread_id:str}", opt=needs(Scope.RUN))
async def remove_thread(
    thread_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources
) -> None:
    """Delete the thread with everything in it. A run that holds it is stopped, and writes nothing any more."""
    wanted = uuid_of("thread", thread_id)

    def unit(connection: Connection) -> tuple[Sequence[Deletion], tuple[str, ...]]:
        deletion = delete_thread(connection, caller.tenant_id, wanted)
        forget_thread(connection, deletion.thread)
        return remove_deleted(connection, [deletion], remove_thread_rows), deletion.stopped

    left, stopped = await resources.database.write(unit)
    resources.wired.notifier.notice(stopped)
    await finish_deletions(resources.database, left, remove_thread_rows)


@post("/threads/search", opt=needs(Scope.READ), status_code=200, responses=_FOUND)
async def find_threads(
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    signer: dependencies.CursorSigner,
    data: JSONBody[ThreadSearch | None] = None,
) -> Response[bytes]:
    """Threads, latest first by default.

    The headers `X-Pagination-Total` and `X-Pagination-Next` (an offset) lead through the pages, or
    `X-Pagination-Next-Cursor` and `X-Pagination-Previous-Cursor`, which skip nothing when threads come and go.
    """
    search = data or ThreadSearch()
    if search.cursor is not None and search.offset:
        raise BodyRefused("$.offset", "does not go with a cursor; give one of the two")
    wanted, sort_by, descending = search.filter(), search.sort_by or "created_at", search.sort_order != "asc"
    filters = {"metadata": search.metadata, "status": search.status, "ids": search.ids}
    listing = Listing(caller.tenant_id, "threads", {**filters, "sort_by": sort_by, "descending": descending})
    place = None if search.cursor is None else signer.verify(search.cursor, listing)
    with_values = search.select is None or not {"values", "interrupts"}.isdisjoint(search.select)

    def unit(connection: Connection) -> tuple[int, bool, Page[Thread], bytes]:
        found = search_threads(
            connection,
            caller.tenant_id,
            wanted,
            sort_by=sort_by,
            descending=descending != (place is not None and place.backward),
            limit=search.limit + 1,
            offset=search.offset,
            around=None if place is None else (place.position[0], int(place.position[1])),
        )
        page = cut(found, search.limit, place, lambda thread: sort_key(thread, sort_by))
        shown = (
            _thread_shown(resources, connection, thread) if with_values else thread_to_wire(thread, None)
            for thread in page.rows
        )
        body = msgspec.json.encode([chosen(each, search.select) for each in shown])
        return count_threads(connection, caller.tenant_id, wanted), len(found) > search.limit, page, body

    total, has_more, page, body = await resources.database.read(unit)
    headers = {"x-pagination-total": str(total)}
    if place is None and has_more:
        headers["x-pagination-next"] = str(search.offset + search.limit)
    if page.next is not None:
        headers["x-pagination-next-cursor"] = signer.sign(page.next, listing)
    if page.previous is not None:
        headers["x-pagination-previous-cursor"] = signer.sign(page.previous, listing)
    return Response(body, status_code=200, media_type=MEDIA_TYPE, headers=headers)


@post("/threads/count", opt=needs(Scope.READ), status_code=200)
async def count_matching_threads(
    caller: dependencies.Caller, resources: dependencies.Resources, data: JSONBody[ThreadCount | None] = None
) -> int:
    """How many threads there are of this kind."""
    wanted = (data or ThreadCount()).filter()
    return await resources.database.read(lambda connection: count_threads(connection, caller.tenant_id, wanted))


@post("/threads/{thread_id:str}/copy", opt=needs(Scope.RUN), status_code=200, responses=_SHOWN)
async def duplicate_thread(
    thread_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    request_key: dependencies.RequestKey,
) -> Response[bytes]:
    """A new thread with the messages and the metadata of another; it has no runs and no open questions."""
    wanted, tenant_id = uuid_of("thread", thread_id), caller.tenant_id
    if request_key is not None:
        # Before the work: nothing is copied for a key that has its answer.
        known = partial(replied, tenant_id=tenant_id, receipt=request_key.receipt(None))
        if (reply := await resources.database.read(known)) is not None:
            return once(reply)

    def receipt(moment: Moment | None) -> Receipt | None:
        return None if request_key is None else request_key.receipt(lambda copied: (200, _encoded(copied, moment)))

    made = await copy_thread(
        resources.database,
        tenant_id,
        wanted,
        now_us=resources.wired.now_us,
        look=partial(_moment, resources),
        receipt=receipt,
    )
    return once(made if isinstance(made, Reply) else _encoded(*made))


async def _made_or_replayed(resources: Resources, unit: Callable[[Connection], Thread | Reply]) -> Response[bytes]:
    def shown(connection: Connection) -> Reply | bytes:
        made = unit(connection)
        return made if isinstance(made, Reply) else _made(resources, connection, made)[1]

    return once(await resources.database.write(shown))


def _made(resources: Resources, connection: Connection, thread: Thread) -> tuple[int, bytes]:
    """What a unit that writes answers with."""
    return 200, _encoded(thread, _moment(resources, connection, thread))


def _shown(resources: Resources, connection: Connection, tenant_id: str, thread_id: str) -> bytes:
    return msgspec.json.encode(_thread_shown(resources, connection, get_thread(connection, tenant_id, thread_id)))


def _thread_shown(resources: Resources, connection: Connection, thread: Thread, *, keep: bool = True) -> ShownThread:
    return thread_to_wire(thread, _moment(resources, connection, thread, keep=keep))


def _moment(resources: Resources, connection: Connection, thread: Thread, *, keep: bool = False) -> Moment | None:
    return stand(connection, thread, resources.wired.journal.fold_cache, keep=keep).moment


def _encoded(thread: Thread, moment: Moment | None) -> bytes:
    return msgspec.json.encode(thread_to_wire(thread, moment))


ROUTES = [
    create_thread,
    read_thread,
    update_thread,
    remove_thread,
    find_threads,
    count_matching_threads,
    duplicate_thread,
]
