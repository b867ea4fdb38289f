"""Recalls: what a run knew from memory when it said what it said, and why it knew it."""

from datetime import datetime
from typing import Any, Literal

from litestar import get
from litestar.params import FromPath
from msgspec import Struct
from sqlalchemy import Connection

from threadmark.app.access import Scope, needs
from threadmark.app.http.path_ids import uuid_of
from threadmark.app.listing.cursors import CursorSigner, Listing
from threadmark.app.listing.pages import PAGE_SIZE, CursorText, PageSize, beyond, cut
from threadmark.app.requests import dependencies
from threadmark.app.resources import Resources
from threadmark.state import (
    Failure,
    Run,
    from_us,
    get_run,
    get_thread,
    lineage_seeing,
    read_entries,
    read_leaves,
    visible,
)
from threadmark.workers.turn.recall_history import RecallRecord, recalls_of

__all__ = ["ROUTES", "RecallPage", "ShownRecall"]


class ShownRecall(Struct):
    """One answer of memory, as the journal keeps it at `seq`: it stays what it was when memory has changed since.

    `asked_by` is `policy` (before the model call) or `model` (by `tool`). Each of the `answers` has its `memory_id`,
    its text, its score and `because` (every signal's part of it), its times and its whole provenance. A text that was
    erased since reads `[erased]`. `unavailable`: memory did not answer, and the run went on without.
    """

    step_key: str
    seq: int
    at: datetime
    asked_by: Literal["policy", "model"]
    tool: str | None
    message_id: str | None
    question: dict[str, Any]
    status: str
    answers: list[dict[str, Any]]
    withheld: dict[str, int]
    recipe: str | None
    failure: Failure | None
    duration_us: int


class RecallPage(Struct):
    """The recalls of the execution that the run belongs to, in order."""

    run_id: str
    thread_id: str
    items: list[ShownRecall]
    next: str | None
    previous: str | None


@get("/runs/{run_id:str}/recalls", opt=needs(Scope.READ))
async def list_recalls(
    run_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    signer: dependencies.CursorSigner,
    limit: PageSize = PAGE_SIZE,
    cursor: CursorText = None,
) -> RecallPage:
    """What the run knew from memory, and why: from its journal, also after a retraction or an erasure."""
    return await _page(caller.tenant_id, uuid_of("run", run_id), None, resources, signer, limit, cursor)


@get("/threads/{thread_id:str}/runs/{run_id:str}/recalls", opt=needs(Scope.READ))
async def list_thread_recalls(
    thread_id: FromPath[str],
    run_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    signer: dependencies.CursorSigner,
    limit: PageSize = PAGE_SIZE,
    cursor: CursorText = None,
) -> RecallPage:
    """The same, for a run of this thread."""
    of_thread = uuid_of("thread", thread_id)
    return await _page(caller.tenant_id, uuid_of("run", run_id), of_thread, resources, signer, limit, cursor)


async def _page(
    tenant_id: str,
    run_id: str,
    thread_id: str | None,
    resources: Resources,
    signer: CursorSigner,
    limit: int,
    cursor: str | None,
) -> RecallPage:
    listing = Listing(tenant_id, "recalls", {"run_id": run_id})
    place = None if cursor is None else signer.verify(cursor, listing)
    run, recalls = await resources.database.read(lambda connection: _recalls(connection, tenant_id, run_id, thread_id))
    page = cut(beyond(recalls, limit, place, _place_of), limit, place, _place_of)
    return RecallPage(
        run_id=run.run_id,
        thread_id=run.thread_id,
        items=[_shown(each) for each in page.rows],
        next=None if page.next is None else signer.sign(page.next, listing),
        previous=None if page.previous is None else signer.sign(page.previous, listing),
    )


def _recalls(
    connection: Connection, tenant_id: str, run_id: str, thread_id: str | None
) -> tuple[Run, list[RecallRecord]]:
    run = get_run(connection, tenant_id, run_id, thread_id=thread_id)
    thread = get_thread(connection, tenant_id, run.thread_id)
    entries = read_entries(connection, thread.number)
    lineage = lineage_seeing(entries, read_leaves(connection, thread.number), thread.lineage, run.number)
    return run, recalls_of(visible(entries, lineage), run.execution_id)


def _shown(record: RecallRecord) -> ShownRecall:
    return ShownRecall(
        step_key=record.step_key,
        seq=record.seq,
        at=from_us(record.at_us),
        asked_by="policy" if record.tool is None else "model",
        tool=record.tool,
        message_id=record.message_id,
        question=dict(record.question),
        status=record.status,
        answers=[dict(each) for each in record.answers],
        withheld=dict(record.withheld),
        recipe=record.recipe,
        failure=record.failure,
        duration_us=record.duration_us,
    )


def _place_of(record: RecallRecord) -> tuple[int | str, ...]:
    return (record.seq,)


ROUTES = [list_recalls, list_thread_recalls]
