"""Drops: what compactions took away, page by page, found again, and in the place where it was said."""

from typing import Annotated, Literal

from litestar import get
from litestar.params import FromPath, QueryParameter
from msgspec import Struct

from threadmark.app.access import Scope, needs
from threadmark.app.http.path_ids import uuid_of
from threadmark.app.listing.cursors import Cursor, Listing
from threadmark.app.listing.pages import PAGE_SIZE, CursorText, PageSize
from threadmark.app.listing.parameters import names_of, one_of
from threadmark.app.requests import dependencies
from threadmark.app.runs.compaction_request import service_of
from threadmark.app.wire.compactions.drop_schema import ShownDrop, ShownFoundDrop, ShownOrigin
from threadmark.compaction import UNIT_CLASSES, DropFilter, DropQuery, FoundDrop, Reason, Status
from threadmark.state import new_id

__all__ = ["ROUTES", "DropPage", "Found"]

FOUND_COUNT, FOUND_TOKENS, FOUND_TOKENS_MAX = 20, 4_000, 100_000
SEQ_MAX = 2**53 - 1
EVERY = "any"
DROP_REASONS = tuple(each.value for each in Reason)

StatusName = Literal[
    "kept_verbatim",
    "kept_normalised",
    "paraphrased",
    "merged",
    "promoted",
    "dropped",
    "altered",
    "erased",
    "introduced",
    "any",
]
Statuses = Annotated[
    list[StatusName] | None,
    QueryParameter(name="status", description="What became of it; without, whatever is not in the view word for word."),
]
Units = Annotated[
    list[Literal["message", "part", "clause", "atom"]] | None, QueryParameter(name="unit", description="Only such.")
]
Classes = Annotated[
    list[Annotated[str, one_of(UNIT_CLASSES)]] | None, QueryParameter(name="class", description="Only such.")
]
Reasons = Annotated[
    list[Annotated[str, one_of(DROP_REASONS)]] | None, QueryParameter(name="reason", description="Only such.")
]
Roles = Annotated[
    list[Literal["system", "human", "ai", "tool"]] | None, QueryParameter(name="role", description="Who said it.")
]
Critical = Annotated[bool | None, QueryParameter(name="critical", description="Only what must not be lost, or not.")]
Words = Annotated[str, QueryParameter(name="q", max_length=2_000, description="Part of its text, in any case.")]
Question = Annotated[
    str, QueryParameter(name="q", max_length=2_000, description="Exact values come first, then shared words.")
]
From = Annotated[int | None, QueryParameter(name="from_seq", ge=1, le=SEQ_MAX, description="Not before this entry.")]
To = Annotated[int | None, QueryParameter(name="to_seq", ge=1, le=SEQ_MAX, description="Not after this entry.")]
Budget = Annotated[
    int, QueryParameter(name="budget_tokens", ge=1, le=FOUND_TOKENS_MAX, description="Tokens of all answers together.")
]
Context = Annotated[int, QueryParameter(name="context", ge=0, le=50, description="Messages before and behind it.")]


class DropPage(Struct):
    """Rows in the order of the ledger, and the cursor to the page behind."""

    items: list[ShownDrop]
    next: str | None


class Found(Struct):
    """The best answers, best first, within the limit and the budget."""

    items: list[ShownFoundDrop]


@get("/compactions/{compaction_id:str}/drops", opt=needs(Scope.READ))
async def list_drops(
    compaction_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    signer: dependencies.CursorSigner,
    limit: PageSize = PAGE_SIZE,
    cursor: CursorText = None,
    status: Statuses = None,
    unit: Units = None,
    classes: Classes = None,
    reason: Reasons = None,
    role: Roles = None,
    critical: Critical = None,
    words: Words = "",
    from_seq: From = None,
    to_seq: To = None,
) -> DropPage:
    """Units in the compaction's ledger: those that are gone, or those of any `status`."""
    wanted = uuid_of("compaction", compaction_id)
    chosen = DropFilter(
        statuses=_statuses(status, DropFilter().statuses),
        units=tuple(unit or ()),
        classes=tuple(names_of("class", classes, UNIT_CLASSES)),
        reasons=tuple(names_of("reason", reason, DROP_REASONS)),
        roles=tuple(role or ()),
        critical=critical,
        text=words,
        from_seq=from_seq,
        to_seq=to_seq,
    )
    listing = Listing(caller.tenant_id, "drops", {"compaction_id": wanted, "chosen": _filters(chosen)})
    after = -1 if cursor is None else int(signer.verify(cursor, listing).position[0])
    found = await service_of(resources).drops.page(caller.tenant_id, wanted, chosen, after=after, count_max=limit + 1)
    last = found[limit - 1].number if len(found) > limit else None
    return DropPage(
        items=[ShownDrop.of(each) for each in found[:limit]],
        next=None if last is None else signer.sign(Cursor((last,)), listing),
    )


@get("/threads/{thread_id:str}/drops", opt=needs(Scope.READ))
async def search_thread_drops(
    thread_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    question: Question = "",
    limit: PageSize = FOUND_COUNT,
    status: Statuses = None,
    classes: Classes = None,
    from_seq: From = None,
    to_seq: To = None,
    budget_tokens: Budget = FOUND_TOKENS,
) -> Found:
    """What the thread's view does not show, found again word for word; without `q`, in the order of the thread."""
    wanted = uuid_of("thread", thread_id)
    asked = _asked(question, limit, status, classes, from_seq, to_seq, budget_tokens)
    return _found(await service_of(resources).drops.search_thread(caller.tenant_id, wanted, asked))


@get("/drops", opt=needs(Scope.READ))
async def search_drops(
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    question: Question,
    limit: PageSize = FOUND_COUNT,
    status: Statuses = None,
    classes: Classes = None,
    budget_tokens: Budget = FOUND_TOKENS,
) -> Found:
    """What no view of the tenant's threads shows, found again word for word."""
    asked = _asked(question, limit, status, classes, None, None, budget_tokens)
    return _found(await service_of(resources).drops.search_tenant(caller.tenant_id, asked))


@get("/drops/{drop_id:str}/source", opt=needs(Scope.READ))
async def open_drop(
    drop_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources, context: Context = 2
) -> ShownOrigin:
    """A drop in its place: the messages that say it, and their neighbours, as they were when it was dropped."""
    service = service_of(resources)
    found = await service.drops.source(caller.tenant_id, drop_id.lower(), context=context)
    key, by = new_id(resources.wired.now_us()), f"key:{caller.key_id}"
    await service.recalls.note(
        caller.tenant_id, found.thread_id, [found.drop.drop_id], "opened", requested_by=by, key=key
    )
    return ShownOrigin.of(found)


def _asked(
    question: str,
    limit: int,
    status: list[StatusName] | None,
    classes: list[str] | None,
    from_seq: int | None,
    to_seq: int | None,
    budget_tokens: int,
) -> DropQuery:
    gone = DropQuery().statuses
    return DropQuery(
        text=question,
        classes=tuple(names_of("class", classes, UNIT_CLASSES)),
        statuses=[Status(each) for each in _statuses(status, tuple(gone)) or list(Status)],
        from_seq=from_seq,
        to_seq=to_seq,
        limit=limit,
        budget_tokens=budget_tokens,
    )


def _statuses(status: list[StatusName] | None, default: tuple[str, ...]) -> tuple[str, ...]:
    """The statuses asked for; none means all."""
    if not status:
        return default
    return () if EVERY in status else tuple(status)


def _filters(chosen: DropFilter) -> dict[str, object]:
    return {name: getattr(chosen, name) for name in chosen.__struct_fields__}


def _found(found: list[FoundDrop]) -> Found:
    return Found([ShownFoundDrop.of(each) for each in found])


ROUTES = [list_drops, search_thread_drops, search_drops, open_drop]
