"""Compactions of threads: ordered, looked at, exported, verified."""

from collections.abc import AsyncGenerator

import msgspec
from litestar import Response, get, post
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, JSONBody
from msgspec import Struct

from threadmark.app.access import Scope, needs
from threadmark.app.access.route_scopes import ENDS_WITH_CLIENT
from threadmark.app.http.path_ids import uuid_of
from threadmark.app.listing.cursors import Cursor, Listing
from threadmark.app.listing.pages import PAGE_SIZE, CursorText, PageSize
from threadmark.app.requests import dependencies
from threadmark.app.resources import Resources
from threadmark.app.runs.compaction_request import compact, service_of, thread_id_of
from threadmark.app.sse.live_response import LiveResponse, whole_or_cut
from threadmark.app.wire.compactions.compaction_schema import NewCompaction, ShownCompaction
from threadmark.app.wire.compactions.drop_schema import ShownDrop
from threadmark.compaction import LedgerCheck

__all__ = ["ROUTES", "CompactionPage", "LedgerVerified", "LedgersVerified"]

NDJSON = "application/x-ndjson"
ORDERED = {
    200: ResponseSpec(ShownCompaction, description="It is over, or was a dry run.", generate_examples=False),
    202: ResponseSpec(ShownCompaction, description="It goes on in the background.", generate_examples=False),
}
LINES = {200: ResponseSpec(str, description="One row of the ledger a line, in JSON.", media_type=NDJSON)}


class CompactionPage(Struct):
    """Compactions of a thread, newest first, and the cursor to the page behind."""

    items: list[ShownCompaction]
    next: str | None


class LedgerVerified(Struct):
    """Whether a ledger is what was sealed, and all that its entries hold; `damage` is the first difference.

    `recounted` is false for a ledger of an earlier extractor: seals, places and words were checked, completeness not.
    """

    compaction_id: str
    holds: bool
    recounted: bool
    row_count: int
    ledger_root: str
    damage: str | None

    @classmethod
    def of(cls, check: LedgerCheck) -> "LedgerVerified":
        """The check as it is shown."""
        return cls(
            check.compaction_id,
            check.damage is None,
            check.recounted,
            check.row_count,
            check.ledger_root,
            check.damage,
        )


class LedgersVerified(Struct):
    """All ledgers of a thread, oldest first, and whether they and the chain over them hold."""

    thread_id: str
    holds: bool
    items: list[LedgerVerified]


@post(
    "/threads/{thread_id:str}/compactions", opt=needs(Scope.RUN) | ENDS_WITH_CLIENT, status_code=200, responses=ORDERED
)
async def compact_thread(
    thread_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    request_key: dependencies.RequestKey,
    data: JSONBody[NewCompaction | None] = None,
) -> Response[bytes]:
    """Compact the thread: in the background, before the answer (`wait`), or only in thought (`dry_run`)."""
    return await compact(resources, caller, uuid_of("thread", thread_id), data or NewCompaction(), request_key)


@get("/threads/{thread_id:str}/compactions", opt=needs(Scope.READ))
async def list_compactions(
    thread_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    signer: dependencies.CursorSigner,
    limit: PageSize = PAGE_SIZE,
    cursor: CursorText = None,
) -> CompactionPage:
    """The compactions of the thread, newest first, whatever came of them."""
    wanted = uuid_of("thread", thread_id)
    listing = Listing(caller.tenant_id, "compactions", {"thread_id": wanted})
    before = None if cursor is None else str(signer.verify(cursor, listing).position[0])
    found = await service_of(resources).compactions.of_thread(
        caller.tenant_id, wanted, count_max=limit + 1, before_id=before
    )
    last = found[limit - 1].compaction_id if len(found) > limit else None
    return CompactionPage(
        items=[ShownCompaction.of(each, wanted) for each in found[:limit]],
        next=None if last is None else signer.sign(Cursor((last,)), listing),
    )


@get("/compactions/{compaction_id:str}", opt=needs(Scope.READ))
async def read_compaction(
    compaction_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources
) -> ShownCompaction:
    """The compaction: where it stands, what it cost, and what its ledger counts."""
    wanted = uuid_of("compaction", compaction_id)
    done = await service_of(resources).compactions.get(caller.tenant_id, wanted)
    return ShownCompaction.of(done, await thread_id_of(resources, done.thread))


@get("/compactions/{compaction_id:str}/ledger", opt=needs(Scope.READ), responses=LINES)
async def export_ledger(
    compaction_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources
) -> LiveResponse:
    """Every row of the ledger in its order, one JSON object a line. Rows and root verify by themselves."""
    wanted = uuid_of("compaction", compaction_id)
    await service_of(resources).compactions.get(caller.tenant_id, wanted)
    return whole_or_cut(resources, _lines(resources, caller.tenant_id, wanted), media_type=NDJSON)


@get("/compactions/{compaction_id:str}/verify", opt=needs(Scope.READ))
async def verify_ledger(
    compaction_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources
) -> LedgerVerified:
    """Check the ledger by the journal alone: its rows are those that were sealed, and all that its entries hold."""
    wanted = uuid_of("compaction", compaction_id)
    return LedgerVerified.of(await service_of(resources).verify(caller.tenant_id, wanted))


@get("/threads/{thread_id:str}/compactions/verify", opt=needs(Scope.READ))
async def verify_ledgers(
    thread_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources
) -> LedgersVerified:
    """Check every ledger of the thread, and that each names the one before it."""
    wanted = uuid_of("thread", thread_id)
    checks = await service_of(resources).verify_thread(caller.tenant_id, wanted)
    items = [LedgerVerified.of(each) for each in checks]
    return LedgersVerified(wanted, all(each.holds for each in items), items)


async def _lines(resources: Resources, tenant_id: str, compaction_id: str) -> AsyncGenerator[bytes, None]:
    async for drop in service_of(resources).drops.ledger(tenant_id, compaction_id):
        yield msgspec.json.encode(ShownDrop.of(drop)) + b"\n"


ROUTES = [
    compact_thread,
    list_compactions,
    read_compaction,
    export_ledger,
    verify_ledger,
    verify_ledgers,
]
