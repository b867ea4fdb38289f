"""Memories: remember, find, recall, and ask where they come from."""

from datetime import datetime
from functools import partial
from typing import Annotated, Any

from litestar import Response, get, post
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Struct

from threadmark.app.access import Scope, needs
from threadmark.app.access.gate import Forbidden
from threadmark.app.http.path_ids import uuid_of
from threadmark.app.listing.cursors import Cursor, Listing
from threadmark.app.listing.memory_scope import NamespaceText, scope_in_query, tenant_scope
from threadmark.app.listing.pages import PAGE_SIZE, CursorText, PageSize
from threadmark.app.pools import BODIES
from threadmark.app.provenance import OpenedSource, open_sources
from threadmark.app.requests import dependencies
from threadmark.app.requests.idempotent_requests import changed_once
from threadmark.app.wire.memories.memory_requests import MemoryItems, RecallQuestion, draft_of, question_of
from threadmark.app.wire.memories.memory_schema import (
    Recalled,
    Remembered,
    ShownMemory,
    answers_to_wire,
    memory_to_wire,
    verdicts_to_wire,
)
from threadmark.memory import Which, parse_filter

__all__ = ["ROUTES", "MemoryDiff", "MemoryHistory", "MemoryPage", "MemoryProvenance"]

_REMEMBERED = {200: ResponseSpec(Remembered, description="What became of each item.", generate_examples=False)}
Which_ = Annotated[
    Which, QueryParameter(name="include", description="`current`, `quarantined` (waiting for approval), or `all`.")
]
Instant = Annotated[datetime | None, QueryParameter(description="An ISO 8601 instant with its offset.")]
Names = Annotated[list[str] | None, QueryParameter(description="One of these.")]


class MemoryPage(Struct):
    """Memories in the order of arrival."""

    items: list[ShownMemory]
    next: str | None


class MemoryHistory(Struct):
    """Every version of a statement, or of its attribute, in the order in which they were believed."""

    items: list[ShownMemory]


class MemoryProvenance(Struct):
    """The sources of a memory, oldest first, each opened."""

    memory_id: str
    items: list[OpenedSource]


class MemoryDiff(Struct):
    """What began and what ceased to be believed between two instants."""

    began: list[ShownMemory]
    ceased: list[ShownMemory]


@post("/memories", opt=needs(Scope.RUN), status_code=200, responses=_REMEMBERED)
async def remember(
    data: JSONBody[MemoryItems],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    request_key: dependencies.RequestKey,
) -> Response[bytes]:
    """Remember one statement or many: all of them, or none. Repeated, a statement gains a source and no twin."""
    now, tenant_id = resources.now(), caller.tenant_id
    if any(item.trust == "operator" for item in data.items) and not caller.may(Scope.ADMIN):
        raise Forbidden("an item with the trust of an operator needs a key with the scope admin")
    # Beside the event loop, as it may be a thousand of them.
    drafts = await BODIES.run(
        lambda: [draft_of(item, at, now=now, asserted_by=f"key:{caller.key_id}") for at, item in enumerate(data.items)]
    )
    remember = partial(resources.wired.recollection.remember, drafts, scope=tenant_scope(tenant_id), now=now)
    return await changed_once(resources, caller, request_key, remember, verdicts_to_wire)


@get("/memories", opt=needs(Scope.READ))
async def list_memories(
    namespace: NamespaceText,
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    signer: dependencies.CursorSigner,
    limit: PageSize = PAGE_SIZE,
    cursor: CursorText = None,
    include: Which_ = Which.CURRENT,
    kind: Names = None,
    subject: Names = None,
    attribute: Names = None,
    trust: Names = None,
    actor: Names = None,
    thread_ref: Names = None,
    run_ref: Names = None,
) -> MemoryPage:
    """Memories below a namespace; several values of one filter are alternatives, several filters all hold."""
    scope = scope_in_query(caller.tenant_id, namespace)
    named: dict[str, Any] = {
        "kind": kind,
        "subject": subject,
        "attribute": attribute,
        "trust": trust,
        "actor": actor,
        "thread_ref": thread_ref,
        "run_ref": run_ref,
    }
    wanted = {name: values for name, values in named.items() if values is not None}
    listing = Listing(
        caller.tenant_id, "memories", {**wanted, "namespace": list(scope.namespace), "include": include.value}
    )
    after = 0 if cursor is None else int(signer.verify(cursor, listing).position[0])
    found = await resources.wired.recollection.list(
        scope=scope, given=parse_filter(wanted or None), after=after, count_max=limit + 1, which=include
    )
    page = found[:limit]
    following = Cursor((page[-1][0],)) if len(found) > limit else None
    return MemoryPage(
        items=[memory_to_wire(held) for _, held in page],
        next=None if following is None else signer.sign(following, listing),
    )


@post("/memories/recall", opt=needs(Scope.READ), status_code=200)
async def recall(
    data: JSONBody[RecallQuestion], caller: dependencies.Caller, resources: dependencies.Resources
) -> Recalled:
    """Ask a question, and have each answer with its score, its reasons, its times and its sources."""
    question = question_of(data, caller.tenant_id, resources.now())
    return answers_to_wire(await resources.wired.recollection.recall(question), explain=data.explain)


@get("/memories/timeline", opt=needs(Scope.READ))
async def read_timeline(
    namespace: NamespaceText,
    subject: Annotated[str, QueryParameter(name="subject", description="Whose attribute.")],
    attribute: Annotated[str, QueryParameter(name="attribute", description="Which attribute.")],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
) -> MemoryHistory:
    """Every version of an attribute, by belief and then by validity."""
    scope = scope_in_query(caller.tenant_id, namespace)
    found = await resources.wired.recollection.timeline(subject, attribute, scope=scope)
    return MemoryHistory([memory_to_wire(each) for each in found])


@get("/memories/diff", opt=needs(Scope.READ))
async def read_diff(
    namespace: NamespaceText,
    known_from: Annotated[
        datetime, QueryParameter(name="known_from", description="The first instant, with its offset.")
    ],
    known_to: Annotated[datetime, QueryParameter(name="known_to", description="The second instant, with its offset.")],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
) -> MemoryDiff:
    """What was believed at the second instant and not at the first, and the other way round."""
    scope = scope_in_query(caller.tenant_id, namespace)
    began, ceased = await resources.wired.recollection.diff(known_from, known_to, scope=scope)
    return MemoryDiff(began=[memory_to_wire(each) for each in began], ceased=[memory_to_wire(each) for each in ceased])


@get("/memories/{memory_id:str}", opt=needs(Scope.READ))
async def read_memory(
    memory_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources
) -> ShownMemory:
    """The memory, whatever became of it since; only an erased one is gone."""
    wanted = uuid_of("memory", memory_id)
    return memory_to_wire(await resources.wired.recollection.get(wanted, scope=tenant_scope(caller.tenant_id)))


@get("/memories/{memory_id:str}/history", opt=needs(Scope.READ))
async def read_memory_history(
    memory_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources
) -> MemoryHistory:
    """Every version of the statement, or of the attribute it speaks of."""
    wanted = uuid_of("memory", memory_id)
    found = await resources.wired.recollection.history(wanted, scope=tenant_scope(caller.tenant_id))
    return MemoryHistory([memory_to_wire(each) for each in found])


@get("/memories/{memory_id:str}/provenance", opt=needs(Scope.READ))
async def read_provenance(
    memory_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources
) -> MemoryProvenance:
    """Where the memory comes from: each source with its journal entry and the words it quotes, as they are now."""
    wanted, tenant_id = uuid_of("memory", memory_id), caller.tenant_id
    sources = await resources.wired.recollection.provenance(wanted, scope=tenant_scope(tenant_id))
    opened = await resources.database.read(lambda connection: open_sources(connection, tenant_id, sources))
    return MemoryProvenance(memory_id=wanted, items=opened)


ROUTES = [
    remember,
    list_memories,
    recall,
    read_timeline,
    read_diff,
    read_memory,
    read_memory_history,
    read_provenance,
]
