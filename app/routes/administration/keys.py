"""API keys of a tenant. Scope `admin`; an operator may name another tenant."""

from datetime import datetime
from functools import partial
from typing import Annotated, Literal

import msgspec
from litestar import Response, delete, get, post
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Meta
from sqlalchemy import Connection

from threadmark.app.access import ApiKey, Scope, key_store, needs
from threadmark.app.access.gate import Forbidden
from threadmark.app.access.issue import OVERLAP_S, OVERLAP_S_MAX, Issued, KeyRequest, issue, revoke
from threadmark.app.access.key import TENANT_PATTERN
from threadmark.app.http.problem import MEDIA_TYPE
from threadmark.app.listing.cursors import Listing
from threadmark.app.listing.pages import PAGE_SIZE, CursorText, PageSize, cut
from threadmark.app.requests import dependencies
from threadmark.app.requests.request_key import replay
from threadmark.state import Reply, to_us
from threadmark.state.threads.receipts import look_up, record

__all__ = ["ROUTES", "KeyPage", "NewKey", "ShownKey"]

ScopeName = Literal["read", "run", "approve", "admin", "operator"]
Label = Annotated[str, Meta(min_length=1, max_length=200)]
TenantId = Annotated[str, Meta(pattern=TENANT_PATTERN, description="1 to 64 letters, digits, '.', '_' and '-'.")]
TenantQuery = Annotated[str | None, QueryParameter(name="tenant_id", description="For operators: whose keys.")]


class NewKey(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A key to be made. `label` and `scopes` may be left out where it `replaces` another.

    `replaces` is the id of a key that expires `overlap_s` seconds from now, and whose tenant, label and scopes the new
    key takes over where it names none. `tenant_id` is the caller's own unless the caller is an operator.
    """

    label: Label | None = None
    scopes: Annotated[list[ScopeName], Meta(min_length=1, max_length=5)] | None = None
    tenant_id: TenantId | None = None
    expires_at: Annotated[datetime, Meta(tz=True)] | None = None
    replaces: str | None = None
    overlap_s: Annotated[int, Meta(ge=0, le=OVERLAP_S_MAX)] = OVERLAP_S

    def spec(self) -> KeyRequest:
        """What is wished, in the words of access."""
        return KeyRequest(
            label=self.label,
            scopes=None if self.scopes is None else frozenset(map(Scope, self.scopes)),
            tenant_id=self.tenant_id,
            expires_at=self.expires_at,
            replaces=self.replaces,
            overlap_s=self.overlap_s,
        )


class ShownKey(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A key as it is shown. `key` is the token itself: in the answer that made it, and never again."""

    key_id: str
    tenant_id: str
    label: str
    scopes: list[str]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    key: str | None = None

    @classmethod
    def of(cls, key: ApiKey, token: str | None = None) -> "ShownKey":
        """The key, with its token only where it is shown."""
        return cls(
            key_id=key.key_id,
            tenant_id=key.tenant_id,
            label=key.label,
            scopes=sorted(key.scopes),
            created_at=key.created_at,
            expires_at=key.expires_at,
            revoked_at=key.revoked_at,
            last_used_at=key.last_used_at,
            key=token,
        )


class KeyPage(msgspec.Struct, kw_only=True):
    """Keys, newest first, and the cursors to the pages beside."""

    items: list[ShownKey]
    next: str | None
    previous: str | None


@get("/admin/keys", opt=needs(Scope.ADMIN))
async def list_keys(
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    signer: dependencies.CursorSigner,
    limit: PageSize = PAGE_SIZE,
    cursor: CursorText = None,
    tenant: TenantQuery = None,
) -> KeyPage:
    """The keys of the caller's tenant, newest first; revoked ones too. An operator may name another tenant."""
    tenant_id = tenant or caller.tenant_id
    if tenant_id != caller.tenant_id and not caller.may(Scope.OPERATOR):
        raise Forbidden("only an operator lists the keys of another tenant")
    listing = Listing(caller.tenant_id, "admin/keys", {"tenant_id": tenant_id})
    place = None if cursor is None else signer.verify(cursor, listing)
    found = await resources.database.read(
        partial(
            key_store.list_keys,
            tenant_id=tenant_id,
            count_max=limit + 1,
            around=None if place is None else int(place.position[0]),
            backward=place is not None and place.backward,
        )
    )
    page = cut(found, limit, place, lambda key: (key.number,))
    return KeyPage(
        items=[ShownKey.of(key) for key in page.rows],
        next=None if page.next is None else signer.sign(page.next, listing),
        previous=None if page.previous is None else signer.sign(page.previous, listing),
    )


@post(
    "/admin/keys",
    opt=needs(Scope.ADMIN),
    responses={201: ResponseSpec(ShownKey, description="The key, with its token.", generate_examples=False)},
)
async def create_key(
    data: JSONBody[NewKey],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    keys: dependencies.Keys,
    request_key: dependencies.RequestKey,
) -> Response[bytes]:
    """Make a key; its token is in this answer and nowhere else, not even in a replay of it by `Idempotency-Key`."""
    receipt = None if request_key is None else request_key.receipt(_answer)
    now = resources.now()

    def unit(connection: Connection) -> Issued | Reply:
        if (reply := look_up(connection, caller.tenant_id, receipt, now_us=to_us(now))) is not None:
            return reply
        issued = issue(connection, caller, data.spec(), now)
        record(connection, caller.tenant_id, receipt, issued)
        return issued

    made = await resources.database.write(unit)
    if isinstance(made, Reply):
        return replay(made)
    if data.replaces is not None:
        keys.forget(data.replaces)
    shown = ShownKey.of(made.key, made.token.text)
    return Response(msgspec.json.encode(shown), status_code=201, media_type=MEDIA_TYPE)


@delete("/admin/keys/{key_id:str}", opt=needs(Scope.ADMIN))
async def revoke_key(
    key_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources, keys: dependencies.Keys
) -> None:
    """Revoke a key: at once in this process, within seconds in every other. A key that is revoked stays so."""
    await resources.database.write(partial(revoke, caller=caller, key_id=key_id, now=resources.now()))
    keys.forget(key_id)


def _answer(issued: Issued) -> tuple[int, bytes]:
    # Without the token: a stored answer would be a usable key in every copy of the database.
    return 201, msgspec.json.encode(ShownKey.of(issued.key))


ROUTES = [list_keys, create_key, revoke_key]
