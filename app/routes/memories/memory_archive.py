"""Everything that memory holds below a namespace, out and in: JSON lines of any number, streamed in both directions."""

from collections.abc import AsyncIterator
from functools import partial
from hashlib import sha256

from litestar import Response, get, post
from litestar.exceptions import InternalServerException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge
from litestar.openapi.datastructures import ResponseSpec
from litestar.response import Stream
from msgspec import Struct

from threadmark.app.access import Scope, needs
from threadmark.app.access.seats import Seat
from threadmark.app.http.body_errors import ClientGone
from threadmark.app.listing.memory_scope import NamespaceText, scope_in_query
from threadmark.app.openapi.operation import LINES, takes
from threadmark.app.pools import ANSWERS, BODIES
from threadmark.app.requests import dependencies
from threadmark.app.requests.idempotent_requests import changed_once
from threadmark.app.requests.request import ApiRequest
from threadmark.app.requests.request_key import IdempotencyKey, streamed_request_key
from threadmark.memory import Imported as Done
from threadmark.memory import SpooledLines

__all__ = ["ROUTES", "Imported"]

#: What is read of an export at once (bytes).
PART_BYTES = 256 * 1024


class Imported(Struct):
    """What an import did, by kind of line; `erased`: lines of what was erased here, which does not come back."""

    added: dict[str, int]
    known: dict[str, int]
    erased: int


_IMPORTED = {200: ResponseSpec(Imported, description="What was kept.", generate_examples=False)}


@get("/memories/export", opt=needs(Scope.ADMIN), media_type=LINES)
async def export_memories(
    namespace: NamespaceText, caller: dependencies.Caller, resources: dependencies.Resources
) -> Stream:
    """Everything below a namespace, history and sources too, as JSON lines for `POST /memories/import`."""
    scope = scope_in_query(caller.tenant_id, namespace)
    with resources.take_export(caller.tenant_id) as seat:
        spool = SpooledLines()
        try:
            await resources.wired.recollection.export_to(spool, scope=scope)
        except BaseException:
            spool.close()
            raise
        return Stream(_parts(spool, seat.kept()), media_type=LINES)


@post(
    "/memories/import",
    opt={**needs(Scope.ADMIN), **takes(LINES)},
    status_code=200,
    request_max_body_size=None,
    responses=_IMPORTED,
)
async def import_memories(
    namespace: NamespaceText,
    request: ApiRequest,
    caller: dependencies.Caller,
    resources: dependencies.Resources,
    idempotency_key: IdempotencyKey = None,
) -> Response[bytes]:
    """Keep the lines of an export, all of them or none; a line that is held already stays as it is.

    Every namespace in them must lie below `namespace`. Repeating it changes nothing. A line that contradicts what is
    held is refused with its number. No line is visible before all of them are.
    """
    # It is there for the API's description: all headers together show that there is but one.
    del idempotency_key
    scope = scope_in_query(caller.tenant_id, namespace)
    streamed_request_key(request, "")  # a key that is none is refused before the body has arrived
    with resources.take_import(caller.tenant_id), SpooledLines() as spool:
        digest = await _receive(request, spool, resources.settings.import_bytes_max)
        key = streamed_request_key(request, digest)
        keep = partial(resources.wired.recollection.import_, spool, scope=scope)
        return await changed_once(resources, caller, key, keep, _shown)


def _shown(done: Done) -> Imported:
    return Imported(added=dict(done.added), known=dict(done.known), erased=done.erased)


async def _receive(request: ApiRequest, spool: SpooledLines, bytes_max: int) -> str:
    """Write the body to the file as it arrives; its SHA-256 (hex). Raises ClientGone; 413 past the limit."""
    if (request.content_length or 0) > bytes_max:
        raise RequestEntityTooLarge
    count, digest = 0, sha256()

    def keep(part: bytes) -> None:
        digest.update(part)
        spool.write(part)

    try:
        async for part in request.stream():
            count += len(part)
            if count > bytes_max:
                raise RequestEntityTooLarge
            await BODIES.run(partial(keep, part))
    except InternalServerException as error:
        raise ClientGone from error
    return digest.hexdigest()


async def _parts(spool: SpooledLines, seat: Seat) -> AsyncIterator[bytes]:
    # If the client leaves before the first part, the export never begins: the request releases its seat.
    try:
        with spool:
            spool.rewind()
            while part := await ANSWERS.run(partial(spool.read, PART_BYTES)):
                yield part
    finally:
        seat.release()


ROUTES = [export_memories, import_memories]
