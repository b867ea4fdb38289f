"""Policies that a tenant keeps by name, and refers to where it orders compactions."""

from typing import Annotated

from litestar import Response, delete, get, put
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Meta, Struct

from threadmark.app.access import Scope, needs
from threadmark.app.listing.cursors import Cursor, Listing
from threadmark.app.listing.pages import PAGE_SIZE, CursorText, PageSize
from threadmark.app.listing.preconditions import IfMatch, IfNoneMatch, condition_of, tag_of
from threadmark.app.requests import dependencies
from threadmark.app.requests.answers import json_answer
from threadmark.app.runs.compaction_request import service_of
from threadmark.app.wire.compactions.compaction_policy_schema import ShownPolicy, ShownVersion, check_policy_name
from threadmark.app.wire.compactions.compaction_schema import PolicyBody, policy_of
from threadmark.compaction import KeptPolicy

__all__ = ["ROUTES", "PolicyPage", "VersionPage"]

FOUND = {200: ResponseSpec(ShownPolicy, description="Its version is the `ETag`.", generate_examples=False)}
PUT = {
    200: ResponseSpec(ShownPolicy, description="It has these values already.", generate_examples=False),
    201: ResponseSpec(ShownPolicy, description="A new version.", generate_examples=False),
}
Version = Annotated[
    Annotated[int, Meta(ge=1, le=2**31 - 1)] | None,
    QueryParameter(name="version", description="Its values in this version; without it, the newest."),
]


class PolicyPage(Struct):
    """Policies by their names, each in its newest version, and the cursor to the page behind."""

    items: list[ShownPolicy]
    next: str | None


class VersionPage(Struct):
    """Versions of a policy, newest first, and the cursor to the page behind."""

    items: list[ShownVersion]
    next: str | None


@get("/compaction-policies", opt=needs(Scope.READ))
async def list_policies(
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    signer: dependencies.CursorSigner,
    limit: PageSize = PAGE_SIZE,
    cursor: CursorText = None,
) -> PolicyPage:
    """The tenant's policies in the order of their names."""
    listing = Listing(caller.tenant_id, "compaction-policies", {})
    after = "" if cursor is None else str(signer.verify(cursor, listing).position[0])
    found = await service_of(resources).policies.of_tenant(caller.tenant_id, after_name=after, count_max=limit + 1)
    last = found[limit - 1].name if len(found) > limit else None
    return PolicyPage(
        items=[ShownPolicy.of(each) for each in found[:limit]],
        next=None if last is None else signer.sign(Cursor((last,)), listing),
    )


@get("/compaction-policies/{name:str}", opt=needs(Scope.READ), responses=FOUND)
async def read_policy(
    name: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources, version: Version = None
) -> Response[bytes]:
    """The values of the name. An earlier version can be read for ever, also when the name was given up."""
    return _tagged(await service_of(resources).policies.get(caller.tenant_id, name, version), 200)


@get("/compaction-policies/{name:str}/versions", opt=needs(Scope.READ))
async def list_policy_versions(
    name: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    signer: dependencies.CursorSigner,
    limit: PageSize = PAGE_SIZE,
    cursor: CursorText = None,
) -> VersionPage:
    """Every version of the name, newest first; those in which it was given up have no policy."""
    listing = Listing(caller.tenant_id, "compaction-policy-versions", {"name": name})
    below = None if cursor is None else int(signer.verify(cursor, listing).position[0])
    found = await service_of(resources).policies.versions(caller.tenant_id, name, below=below, count_max=limit + 1)
    last = found[limit - 1].version if len(found) > limit else None
    return VersionPage(
        items=[ShownVersion.of(each) for each in found[:limit]],
        next=None if last is None else signer.sign(Cursor((last,)), listing),
    )


@put("/compaction-policies/{name:str}", opt=needs(Scope.ADMIN), status_code=200, responses=PUT)
async def put_policy(
    name: FromPath[str],
    data: JSONBody[PolicyBody],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Response[bytes]:
    """Give the name these values. Compactions and jobs that were ordered keep theirs."""
    kept, is_new = await service_of(resources).policies.put(
        caller.tenant_id,
        check_policy_name(name),
        policy_of(data, "$"),
        requested_by=f"key:{caller.key_id}",
        condition=condition_of(if_match, if_none_match),
    )
    return _tagged(kept, 201 if is_new else 200)


@delete("/compaction-policies/{name:str}", opt=needs(Scope.ADMIN), status_code=204)
async def delete_policy(
    name: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources, if_match: IfMatch = None
) -> None:
    """Give the name up. What it stood for stays readable by version; put again, it gets the next number."""
    await service_of(resources).policies.give_up(
        caller.tenant_id, name, requested_by=f"key:{caller.key_id}", condition=condition_of(if_match)
    )


def _tagged(kept: KeptPolicy, status_code: int) -> Response[bytes]:
    return json_answer(ShownPolicy.of(kept), status_code=status_code, headers={"etag": tag_of(kept.version)})


ROUTES = [list_policies, read_policy, list_policy_versions, put_policy, delete_policy]
