"""Idempotency on the wire: the key of a request, and how a stored answer is sent again."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from litestar import Response
from litestar.params import HeaderParameter

from threadmark.app.http.problem import MEDIA_TYPE
from threadmark.app.requests.idempotency import check_key, request_digest
from threadmark.app.requests.request import ApiRequest
from threadmark.state import Receipt, Reply

__all__ = ["REPLAYED", "IdempotencyKey", "RequestKey", "provide_request_key", "replay", "streamed_request_key"]

#: Says that an answer is that of an earlier request with the same key.
REPLAYED = {"idempotent-replayed": "true"}
_DESCRIPTION = (
    "1 to 255 visible ASCII characters. The same key with the same request replays the stored answer for 24 hours; "
    "with another request it is refused."
)

IdempotencyKey = Annotated[str | None, HeaderParameter(name="Idempotency-Key", description=_DESCRIPTION)]


@dataclass(frozen=True, slots=True)
class RequestKey:
    """The Idempotency-Key of a request, and the digest that tells it from another request with the same key."""

    key: str
    request_digest: str

    def receipt(self, answer: Callable[[Any], tuple[int, bytes]] | None) -> Receipt:
        """What the unit that honours the request records; `answer` writes the stored answer from what was made."""
        return Receipt(key=self.key, request_digest=self.request_digest, answer=answer)


async def provide_request_key(
    request: ApiRequest,
    idempotency_key: IdempotencyKey = None,
) -> RequestKey | None:
    """Dependency `request_key`: None without the header. Raises BadIdempotencyKey."""
    # The parameter is there for the API's description; only all headers together show that there is but one.
    del idempotency_key
    key = check_key(request.headers.getall("idempotency-key", []))
    if key is None:
        return None
    path = f"{request.url.path}?{request.url.query}"
    return RequestKey(key, request_digest(request.method, path, await request.value()))


def streamed_request_key(request: ApiRequest, body_digest: str) -> RequestKey | None:
    """The key of a request whose body was read as it arrived; None without the header. Raises BadIdempotencyKey."""
    key = check_key(request.headers.getall("idempotency-key", []))
    path = f"{request.url.path}?{request.url.query}"
    return None if key is None else RequestKey(key, request_digest(request.method, path, body_digest))


def replay(reply: Reply) -> Response[bytes]:
    """The stored answer, marked as such. The reply must be complete."""
    if reply.status_code is None or reply.body is None:
        raise ValueError("this receipt has no answer yet")
    return Response(reply.body, status_code=reply.status_code, media_type=MEDIA_TYPE, headers=REPLAYED)
