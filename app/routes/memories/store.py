"""The store of the dialect: keyed JSON documents in namespaces, over the same rows as memories."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from litestar import delete, get, post, put
from litestar.exceptions import ValidationException
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta, Struct

from threadmark.app.access import Scope, needs
from threadmark.app.http.body_errors import BodyRefused
from threadmark.app.listing.pages import PAGE_SIZE_MAX
from threadmark.app.requests import dependencies
from threadmark.memory import Change, Item, Items

__all__ = [
    "ROUTES",
    "ItemKey",
    "ItemSearch",
    "NamespaceSearch",
    "Namespaces",
    "NewItem",
    "ShownFoundItem",
    "ShownItem",
    "ShownItems",
]

LIMIT, LIMIT_MAX, OFFSET_MAX = 10, PAGE_SIZE_MAX, 1_000_000
TTL_MINUTES_MAX = 10 * 365 * 24 * 60
_Labels = Annotated[list[str], Meta(min_length=1)]
_Limit = Annotated[int, Meta(ge=1, le=LIMIT_MAX)]
_Offset = Annotated[int, Meta(ge=0, le=OFFSET_MAX)]


class NewItem(Struct, forbid_unknown_fields=True):
    """A document to keep under its key, in place of the one before. `ttl`: minutes from now; null: without an end.

    Everything is searchable: an `index` that leaves something out is refused.
    """

    namespace: _Labels
    key: str
    value: dict[str, Any]
    index: None = None
    ttl: Annotated[float, Meta(gt=0, le=TTL_MINUTES_MAX)] | None = None


class ItemKey(Struct, forbid_unknown_fields=True):
    """Which document."""

    namespace: _Labels
    key: str


class ItemSearch(Struct, forbid_unknown_fields=True):
    """Documents below a prefix (`[]`: all of the tenant). `filter`: fields and their values, or `$eq`, `$ne`, `$gt`,
    `$gte`, `$lt`, `$lte`. With a `query` best first, else the newest update first."""

    namespace_prefix: list[str]
    filter: Annotated[dict[str, Any], Meta(min_length=1)] | None = None
    limit: _Limit = LIMIT
    offset: _Offset = 0
    query: str | None = None
    refresh_ttl: Literal[False] | None = None


class NamespaceSearch(Struct, forbid_unknown_fields=True):
    """Namespaces that hold documents, in order; those longer than `max_depth` are cut to it."""

    prefix: list[str] | None = None
    suffix: list[str] | None = None
    max_depth: Annotated[int, Meta(ge=1)] | None = None
    limit: _Limit = 100
    offset: _Offset = 0


class ShownItem(Struct, kw_only=True):
    """A document. `created_at` is that of its first version."""

    namespace: list[str]
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime


class ShownFoundItem(ShownItem, kw_only=True):
    """A document that was searched for; `score` is null without a query."""

    score: float | None


class ShownItems(Struct):
    """Documents."""

    items: list[ShownFoundItem]


class Namespaces(Struct):
    """Namespaces, each a list of labels."""

    namespaces: list[list[str]]


@put("/store/items", opt=needs(Scope.RUN), status_code=204)
async def put_item(data: JSONBody[NewItem], caller: dependencies.Caller, resources: dependencies.Resources) -> None:
    """Keep a document under its key."""
    _check_labels(data.namespace)
    await Items(resources.wired.recollection).put(
        tuple(data.namespace),
        data.key,
        data.value,
        tenant_id=caller.tenant_id,
        now=resources.now(),
        ttl=None if data.ttl is None else timedelta(minutes=data.ttl),
    )


@get("/store/items", opt=needs(Scope.READ))
async def get_item(
    key: Annotated[str, QueryParameter(name="key", description="The key of the document.")],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    namespace: Annotated[
        str, QueryParameter(name="namespace", description="The labels of the namespace, with dots between them.")
    ],
    refresh_ttl: Annotated[
        bool, QueryParameter(name="refresh_ttl", description="A reading never prolongs a document: true is refused.")
    ] = False,
) -> ShownItem | None:
    """The document, or null where there is none."""
    if refresh_ttl:
        raise ValidationException(extra=[{"key": "refresh_ttl", "message": "a reading prolongs nothing here"}])
    found = await Items(resources.wired.recollection).get(
        tuple(namespace.split(".")), key, tenant_id=caller.tenant_id, now=resources.now()
    )
    return None if found is None else _shown(found)


@delete("/store/items", opt=needs(Scope.RUN), status_code=204)
async def delete_item(data: JSONBody[ItemKey], caller: dependencies.Caller, resources: dependencies.Resources) -> None:
    """Give a document up; one that is not there is no error."""
    await Items(resources.wired.recollection).delete(
        tuple(data.namespace),
        data.key,
        tenant_id=caller.tenant_id,
        change=Change(by=f"key:{caller.key_id}", now=resources.now()),
    )


@post("/store/items/search", opt=needs(Scope.READ), status_code=200)
async def search_items(
    data: JSONBody[ItemSearch], caller: dependencies.Caller, resources: dependencies.Resources
) -> ShownItems:
    """Documents that match."""
    found = await Items(resources.wired.recollection).search(
        tuple(data.namespace_prefix),
        tenant_id=caller.tenant_id,
        now=resources.now(),
        given=data.filter,
        query=data.query,
        count_max=data.limit,
        offset=data.offset,
    )
    return ShownItems([_found(each) for each in found])


@post("/store/namespaces", opt=needs(Scope.READ), status_code=200)
async def list_namespaces(
    data: JSONBody[NamespaceSearch], caller: dependencies.Caller, resources: dependencies.Resources
) -> Namespaces:
    """Namespaces that hold documents."""
    found = await Items(resources.wired.recollection).namespaces(
        tenant_id=caller.tenant_id,
        now=resources.now(),
        prefix=tuple(data.prefix or ()),
        suffix=tuple(data.suffix or ()),
        depth_max=data.max_depth,
        count_max=data.limit,
        offset=data.offset,
    )
    return Namespaces([list(each) for each in found])


def _check_labels(labels: list[str]) -> None:
    # The dialect's reading puts dots between labels: one with a dot could be kept and never read again.
    for at, label in enumerate(labels):
        if "." in label:
            raise BodyRefused(f"$.namespace[{at}]", "holds a dot, which the reading of a document cannot carry")


def _shown(item: Item) -> ShownItem:
    return ShownItem(
        namespace=list(item.namespace),
        key=item.key,
        value=dict(item.value),
        created_at=item.created_at,
        updated_at=item.updated_at,
    )


def _found(item: Item) -> ShownFoundItem:
    return ShownFoundItem(
        namespace=list(item.namespace),
        key=item.key,
        value=dict(item.value),
        created_at=item.created_at,
        updated_at=item.updated_at,
        score=item.score,
    )


ROUTES = [put_item, get_item, delete_item, search_items, list_namespaces]
