"""Changes of what is believed: give up, take back, approve, keep a source apart, erase."""

import asyncio
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
from litestar import Response, get, post
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, JSONBody
from msgspec import Struct

from threadmark.app.access import Scope, needs
from threadmark.app.access.key import Caller
from threadmark.app.http.path_ids import uuid_of
from threadmark.app.listing.memory_scope import tenant_scope
from threadmark.app.requests import dependencies
from threadmark.app.requests.answers import json_answer
from threadmark.app.requests.idempotent_requests import changed_once, memory_receipt, repeatable
from threadmark.app.requests.request_key import RequestKey
from threadmark.app.resources import Resources
from threadmark.app.wire.memories.memory_requests import Erase, QuarantineSource, Retraction, forget_of, selector_of
from threadmark.app.wire.memories.memory_schema import ShownErasure, ShownMemory, erasure_to_wire, memory_to_wire
from threadmark.memory import AnsweredBefore, Change, Erasure, Forget, Receipt, Trust

__all__ = ["ROUTES", "Held", "Released", "Restored", "Retracted"]

#: How long a request waits for its erasure; what is left is performed after the answer.
ERASE_WAIT_S = 5.0


class Retracted(Struct):
    """The versions whose belief has ended."""

    memory_id: str
    retracted: list[str]


class Restored(Struct):
    """The memories that are believed again."""

    memory_id: str
    restored: list[str]


class Held(Struct):
    """A quarantine of a source, and how many memories left recall by it."""

    quarantine_id: str
    held_count: int


class Released(Struct):
    """How many memories came back."""

    quarantine_id: str
    released_count: int


def _answers(kind: type[Any], description: str) -> dict[int, ResponseSpec]:
    return {200: ResponseSpec(kind, description=description, generate_examples=False)}


@post(
    "/memories/{memory_id:str}/retract",
    opt=needs(Scope.RUN),
    status_code=200,
    responses=_answers(Retracted, "It is believed no more."),
)
async def retract_memory(
    memory_id: FromPath[str],
    data: JSONBody[Retraction],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    request_key: dependencies.RequestKey,
) -> Response[bytes]:
    """Give a memory up, with the reason. It stays in its history; 409 when it is not believed any more."""
    wanted = uuid_of("memory", memory_id)

    retraction = partial(
        resources.wired.recollection.retract,
        wanted,
        scope=tenant_scope(caller.tenant_id),
        reason=data.reason,
        change=_change(caller, resources.now()),
    )
    return await changed_once(resources, caller, request_key, retraction, lambda ended: Retracted(wanted, list(ended)))


@post(
    "/memories/{memory_id:str}/undo",
    opt=needs(Scope.RUN),
    status_code=200,
    responses=_answers(Restored, "What it did is taken back."),
)
async def undo_memory(
    memory_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    request_key: dependencies.RequestKey,
) -> Response[bytes]:
    """Take back what the memory superseded, or its retraction. 409 when a later change stands on it."""
    wanted = uuid_of("memory", memory_id)

    undoing = partial(
        resources.wired.recollection.undo,
        wanted,
        scope=tenant_scope(caller.tenant_id),
        change=_change(caller, resources.now()),
    )
    return await changed_once(
        resources, caller, request_key, undoing, lambda restored: Restored(wanted, list(restored))
    )


@post(
    "/memories/{memory_id:str}/approve",
    opt=needs(Scope.APPROVE),
    status_code=200,
    responses=_answers(ShownMemory, "It is believed."),
)
async def approve_memory(
    memory_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    request_key: dependencies.RequestKey,
) -> Response[bytes]:
    """Believe a memory that was kept apart, and let one of an untrusted source last."""
    wanted, scope = uuid_of("memory", memory_id), tenant_scope(caller.tenant_id)

    approval = partial(
        resources.wired.recollection.approve, wanted, scope=scope, change=_change(caller, resources.now())
    )
    return await changed_once(resources, caller, request_key, approval, memory_to_wire)


@post(
    "/memories/quarantine",
    opt=needs(Scope.APPROVE),
    status_code=200,
    responses=_answers(Held, "The source is kept apart."),
)
async def quarantine(
    data: JSONBody[QuarantineSource],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    request_key: dependencies.RequestKey,
) -> Response[bytes]:
    """Keep everything that rests on a source out of recall, at once, also what comes from it later."""
    selector = selector_of(data.source)

    holding = partial(
        resources.wired.recollection.quarantine,
        selector,
        tenant_id=caller.tenant_id,
        reason=data.reason,
        now=resources.now(),
    )
    return await changed_once(resources, caller, request_key, holding, lambda held: Held(*held))


@post(
    "/memories/quarantine/{quarantine_id:str}/release",
    opt=needs(Scope.APPROVE),
    status_code=200,
    responses=_answers(Released, "The source is kept apart no more."),
)
async def release(
    quarantine_id: FromPath[str],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    request_key: dependencies.RequestKey,
) -> Response[bytes]:
    """End a quarantine; 0 for one that has ended already, 404 for one that the tenant does not have."""
    wanted = uuid_of("quarantine", quarantine_id)

    releasing = partial(resources.wired.recollection.release, wanted, tenant_id=caller.tenant_id, now=resources.now())
    return await changed_once(resources, caller, request_key, releasing, lambda count: Released(wanted, count))


@post(
    "/memories/erase",
    opt=needs(Scope.ADMIN),
    status_code=200,
    responses=_answers(ShownErasure, "The erasure, or what one would remove."),
)
async def erase(
    data: JSONBody[Erase],
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    request_key: dependencies.RequestKey,
) -> Response[bytes]:
    """Erase by namespace, subject, thread, source or tenant, in every store of memory. Only ids are left.

    Its job is on disk first: one that is interrupted, or takes longer than this request, goes on by itself and is
    shown by `GET /memories/erasures/{erasure_id}`.
    """
    what, tenant_id, now = forget_of(data), caller.tenant_id, resources.now()
    memory = resources.wired.recollection
    if data.dry_run:
        counted = await memory.erase(what, tenant_id=tenant_id, now=now, dry_run=True)
        return json_answer(erasure_to_wire(counted))

    async def act() -> tuple[int, bytes]:
        erasure = await _begun(resources, caller, request_key, what)
        with suppress(TimeoutError):
            async with asyncio.timeout(ERASE_WAIT_S):
                erasure = await memory.resume_erasure(erasure.erasure_id, tenant_id=tenant_id, now=now)
        return 200, msgspec.json.encode(erasure_to_wire(erasure))

    return await repeatable(resources, caller, request_key, act)


@get("/memories/erasures/{erasure_id:str}", opt=needs(Scope.READ))
async def read_erasure(
    erasure_id: FromPath[str], caller: dependencies.Caller, resources: dependencies.Resources
) -> ShownErasure:
    """How far an erasure is, and exactly what it removed."""
    wanted = uuid_of("erasure", erasure_id)
    return erasure_to_wire(await resources.wired.recollection.erasure(wanted, tenant_id=caller.tenant_id))


def _change(caller: Caller, now: datetime) -> Change:
    trust = Trust.OPERATOR if caller.may(Scope.ADMIN) else Trust.USER
    return Change(by=f"key:{caller.key_id}", now=now, trust=trust)


async def _begun(resources: Resources, caller: Caller, key: RequestKey | None, what: Forget) -> Erasure:
    """The erasure, or the one that an equal request has begun: here, at another server, or before a crash."""
    memory, tenant_id = resources.wired.recollection, caller.tenant_id
    receipt: Receipt[Erasure] | None = None
    if key is not None:
        receipt = memory_receipt(key, lambda begun: begun.erasure_id.encode())
    try:
        return await memory.begin_erasure(
            what,
            tenant_id=tenant_id,
            now=resources.now(),
            receipt=receipt,
            open_max=resources.settings.memory_erasures_max,
        )
    except AnsweredBefore as first:
        return await memory.erasure(first.answer.decode(), tenant_id=tenant_id)


ROUTES = [
    retract_memory,
    undo_memory,
    approve_memory,
    quarantine,
    release,
    erase,
    read_erasure,
]
