"""Who asked for what compactions took away, and what they had better leave in the view."""

from litestar import get
from litestar.params import FromPath
from msgspec import Struct

from threadmark.app.access import Scope, needs
from threadmark.app.http.path_ids import uuid_of
from threadmark.app.listing.cursors import Cursor, Listing
from threadmark.app.listing.pages import PAGE_SIZE, CursorText, PageSize
from threadmark.app.requests import dependencies
from threadmark.app.runs.compaction_request import service_of
from threadmark.app.wire.compactions.drop_recall_schema import ShownDropRecall, ShownSuggestion

__all__ = ["ROUTES", "DropRecallPage", "PinSuggestions"]


class DropRecallPage(Struct):
    """Recalls of drops, newest first, and the cursor to the page behind."""

    items: list[ShownDropRecall]
    next: str | None


class PinSuggestions(Struct):
    """What would be worth a pin, the most wanted first."""

    items: list[ShownSuggestion]


@get("/threads/{thread_id:str}/drops/recalls", opt=needs(Scope.READ))
async def list_drop_recalls(
    thread_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    signer: dependencies.CursorSigner,
    limit: PageSize = PAGE_SIZE,
    cursor: CursorText = None,
) -> DropRecallPage:
    """Which drops of the thread were asked for again, when, how and by whom. A recall goes with its drop's source."""
    wanted = uuid_of("thread", thread_id)
    listing = Listing(caller.tenant_id, "drop-recalls", {"thread_id": wanted})
    position = None if cursor is None else signer.verify(cursor, listing).position
    before = None if position is None else (int(position[0]), str(position[1]))
    found = await service_of(resources).recalls.of_thread(caller.tenant_id, wanted, before=before, count_max=limit + 1)
    last = found[limit - 1] if len(found) > limit else None
    return DropRecallPage(
        items=[ShownDropRecall.of(each) for each in found[:limit]],
        next=None if last is None else signer.sign(Cursor((last.at_us, last.key)), listing),
    )


@get("/threads/{thread_id:str}/pins/suggestions", opt=needs(Scope.READ))
async def suggest_pins(
    thread_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources
) -> PinSuggestions:
    """Drops that were asked for at least twice, and that the view does not show as they were said."""
    wanted = uuid_of("thread", thread_id)
    found = await service_of(resources).recalls.suggestions(caller.tenant_id, wanted)
    return PinSuggestions([ShownSuggestion.of(each) for each in found])


ROUTES = [list_drop_recalls, suggest_pins]
