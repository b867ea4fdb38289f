"""Views: what the model sees of a thread, how it changed, and the way back."""

from typing import Annotated

import msgspec
from litestar import Response, get, post
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Struct

from threadmark.app.access import Scope, needs
from threadmark.app.http.path_ids import uuid_of
from threadmark.app.listing.cursors import Cursor, Listing
from threadmark.app.listing.pages import PAGE_SIZE, CursorText, PageSize
from threadmark.app.pools import ANSWERS
from threadmark.app.requests import dependencies
from threadmark.app.requests.answers import json_answer, once
from threadmark.app.requests.idempotent_requests import repeatable
from threadmark.app.runs.compaction_request import service_of, thread_id_of
from threadmark.app.wire.compactions.compaction_schema import Expansion, NewPins, Restoration
from threadmark.app.wire.compactions.drop_schema import ShownExpansion
from threadmark.app.wire.compactions.view_schema import RenderedView, ShownDiff, ViewHead
from threadmark.compaction import KeptView, Source

__all__ = ["ROUTES", "ViewList"]

EXPANDED = {200: ResponseSpec(ShownExpansion, description="Its entries, as they were said.", generate_examples=False)}
SHOWN = {200: ResponseSpec(RenderedView, description="The view, message by message.", generate_examples=False)}
MOVED = {200: ResponseSpec(ViewHead, description="The thread's view from now on.", generate_examples=False)}
ViewQuery = Annotated[
    str | None, QueryParameter(name="view_id", description="An earlier view of the thread; `whole` is everything.")
]
Before = Annotated[str, QueryParameter(name="before", description="The id of a view; `whole` is everything.")]
After = Annotated[str, QueryParameter(name="after", description="The id of another view.")]


class ViewList(Struct):
    """The latest views of a thread, newest first. Before the oldest of all there was `whole`: everything."""

    items: list[ViewHead]
    next: str | None


@get("/threads/{thread_id:str}/view", opt=needs(Scope.READ), responses=SHOWN)
async def show_view(
    thread_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources, view: ViewQuery = None
) -> Response[bytes]:
    """What the model is sent of the thread, message by message, with the tokens of each."""
    wanted = uuid_of("thread", thread_id)
    shown = await service_of(resources).views.show(caller.tenant_id, wanted, view)
    return once(await ANSWERS.run(lambda: msgspec.json.encode(RenderedView.rendered(shown, wanted))))


@get("/threads/{thread_id:str}/views", opt=needs(Scope.READ))
async def list_views(
    thread_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    signer: dependencies.CursorSigner,
    limit: PageSize = PAGE_SIZE,
    cursor: CursorText = None,
) -> ViewList:
    """The thread's views, newest first."""
    wanted = uuid_of("thread", thread_id)
    listing = Listing(caller.tenant_id, "views", {"thread_id": wanted})
    below = None if cursor is None else int(signer.verify(cursor, listing).position[0])
    found = await service_of(resources).views.of_thread(caller.tenant_id, wanted, limit + 1, below=below)
    last = found[limit - 1].view.version if len(found) > limit else None
    return ViewList(
        items=[ViewHead.of(each, wanted) for each in found[:limit]],
        next=None if last is None else signer.sign(Cursor((last,)), listing),
    )


@post(
    "/threads/{thread_id:str}/segments/{segment_id:str}/expand",
    opt=needs(Scope.READ),
    status_code=200,
    responses=EXPANDED,
)
async def expand_segment(
    thread_id: FromPath[str],
    segment_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    data: JSONBody[Expansion | None] = None,
) -> Response[bytes]:
    """The entries behind a summary of the thread, word for word. Nothing changes: the view stays as it is."""
    wanted, spec = uuid_of("thread", thread_id), data or Expansion()
    found = await service_of(resources).segments.expand(
        caller.tenant_id, wanted, segment_id, budget_tokens=spec.budget_tokens, from_seq=spec.from_seq
    )
    return json_answer(ShownExpansion.of(found, wanted))


@get("/threads/{thread_id:str}/views/diff", opt=needs(Scope.READ))
async def compare_views(
    thread_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    before: Before,
    after: After,
) -> ShownDiff:
    """Which entries, summaries and pins came and went between two views of the thread."""
    wanted = uuid_of("thread", thread_id)
    return ShownDiff.of(await service_of(resources).views.diff(caller.tenant_id, wanted, before, after), before, after)


@post("/compactions/{compaction_id:str}/restore", opt=needs(Scope.RUN), status_code=200, responses=MOVED)
async def restore(
    compaction_id: FromPath[str],
    data: JSONBody[Restoration],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    request_key: dependencies.RequestKey,
) -> Response[bytes]:
    """Show again what the compaction took away: all of it, a range of entries, or single drops as pins."""
    data.check()
    wanted, views = uuid_of("compaction", compaction_id), service_of(resources).views
    by = f"key:{caller.key_id}"

    async def act() -> tuple[int, bytes]:
        done = await service_of(resources).compactions.get(caller.tenant_id, wanted)
        thread_id = await thread_id_of(resources, done.thread)
        if data.from_seq is not None and data.to_seq is not None:
            kept = await views.restore_range(caller.tenant_id, wanted, data.from_seq, data.to_seq, requested_by=by)
        elif data.drop_ids is not None:
            kept = await views.restore_drops(caller.tenant_id, wanted, data.drop_ids, requested_by=by)
        else:
            kept = await views.restore(caller.tenant_id, wanted, requested_by=by)
        return _moved(kept, thread_id)

    return await repeatable(resources, caller, request_key, act)


@post("/threads/{thread_id:str}/views/{view_id:str}/undo", opt=needs(Scope.RUN), status_code=200, responses=MOVED)
async def undo(
    thread_id: FromPath[str],
    view_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    request_key: dependencies.RequestKey,
) -> Response[bytes]:
    """Undo the restore that made this view, the thread's present one. An undo can be undone."""
    wanted, by = uuid_of("thread", thread_id), f"key:{caller.key_id}"

    async def act() -> tuple[int, bytes]:
        views = service_of(resources).views
        return _moved(await views.undo(caller.tenant_id, wanted, view_id, requested_by=by), wanted)

    return await repeatable(resources, caller, request_key, act)


@post("/threads/{thread_id:str}/views/{view_id:str}/activate", opt=needs(Scope.RUN), status_code=200, responses=MOVED)
async def activate(
    thread_id: FromPath[str],
    view_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    request_key: dependencies.RequestKey,
) -> Response[bytes]:
    """Show what an earlier view showed, and all that was said since."""
    wanted, by = uuid_of("thread", thread_id), f"key:{caller.key_id}"

    async def act() -> tuple[int, bytes]:
        views = service_of(resources).views
        return _moved(await views.activate(caller.tenant_id, wanted, view_id, requested_by=by), wanted)

    return await repeatable(resources, caller, request_key, act)


@post("/threads/{thread_id:str}/pins", opt=needs(Scope.RUN), status_code=200, responses=MOVED)
async def pin_spans(
    thread_id: FromPath[str],
    data: JSONBody[NewPins],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    request_key: dependencies.RequestKey,
) -> Response[bytes]:
    """Pin spans of entries that a summary covers: the model sees them word for word from now on."""
    wanted, by = uuid_of("thread", thread_id), f"key:{caller.key_id}"
    spans = [Source(each.seq, each.message, each.part, each.start, each.end) for each in data.spans]

    async def act() -> tuple[int, bytes]:
        views = service_of(resources).views
        return _moved(await views.pin(caller.tenant_id, wanted, spans, requested_by=by), wanted)

    return await repeatable(resources, caller, request_key, act)


def _moved(kept: KeptView, thread_id: str) -> tuple[int, bytes]:
    return 200, msgspec.json.encode(ViewHead.of(kept, thread_id))


ROUTES = [show_view, list_views, expand_segment, compare_views, restore, undo, activate, pin_spans]
