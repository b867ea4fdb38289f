"""Everything that memory holds below a namespace, out and in: JSON lines of any number, streamed in both directions."""

from collections.abc import AsyncIterator
from functools import partial

from litestar import get, post
from litestar.exceptions import InternalServerException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge
from litestar.response import Stream
from msgspec import Struct

from threadmark.app.access import Scope, needs
from threadmark.app.listing.memory_scope import NamespaceText, scope_in_query
from threadmark.app.pools import ANSWERS, BODIES
from threadmark.app.requests import dependencies
from threadmark.app.requests.request import ApiRequest, ClientGone
from threadmark.memory import SpooledLines

__all__ = ["ROUTES", "Imported"]

#: What is read of an export at once (bytes).
PART_BYTES = 256 * 1024


class Imported(Struct):
    """What an import did, by kind of line; `erased`: lines of what was erased here, which does not come back."""

    added: dict[str, int]
    known: dict[str, int]
    erased: int


@get("/memories/export", opt=needs(Scope.ADMIN), media_type="application/x-ndjson")
async def export_memories(
    namespace: NamespaceText, caller: dependencies.Caller, resources: dependencies.Resources
) -> Stream:
    """Everything below a namespace, history and sources too, as JSON lines for `POST /memories/import`."""
    scope = scope_in_query(caller.tenant_id, namespace)
    spool = SpooledLines()
    try:
        await resources.wired.recollection.export_to(spool, scope=scope)
    except BaseException:
        spool.close()
        raise
    return Stream(_parts(spool), media_type="application/x-ndjson")


@post("/memories/import", opt=needs(Scope.ADMIN), status_code=200, request_max_body_size=None)
async def import_memories(
    namespace: NamespaceText, request: ApiRequest, caller: dependencies.Caller, resources: dependencies.Resources
) -> Imported:
    """Keep the lines of an export, all of them or none; a line that is held already stays as it is.

    Every namespace in them must lie below `namespace`. Repeating it changes nothing. A line that contradicts what is
    held is refused with its number.
    """
    scope = scope_in_query(caller.tenant_id, namespace)
    with SpooledLines() as spool:
        await _receive(request, spool, resources.settings.import_bytes_max)
        done = await resources.wired.recollection.import_(spool, scope=scope)
    return Imported(added=dict(done.added), known=dict(done.known), erased=done.erased)


async def _receive(request: ApiRequest, spool: SpooledLines, bytes_max: int) -> None:
    """Write the body to the file as it arrives. Raises ClientGone; 413 past the limit."""
    if (request.content_length or 0) > bytes_max:
        raise RequestEntityTooLarge
    count = 0
    try:
        async for part in request.stream():
            count += len(part)
            if count > bytes_max:
                raise RequestEntityTooLarge
            await BODIES.run(partial(spool.write, part))
    except InternalServerException as error:
        raise ClientGone from error


async def _parts(spool: SpooledLines) -> AsyncIterator[bytes]:
    with spool:
        spool.rewind()
        while part := await ANSWERS.run(partial(spool.read, PART_BYTES)):
            yield part


ROUTES = [export_memories, import_memories]
