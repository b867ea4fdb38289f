"""A whole answer, straight over ASGI, for what is refused before any route is reached."""

from collections.abc import Iterable

from litestar.types import Scope, Send

from threadmark.app.http.problem import MEDIA_TYPE, Problem
from threadmark.app.http.request_state import request_id_of

__all__ = ["answer", "refuse"]


async def refuse(scope: Scope, send: Send, problem: Problem) -> None:
    """Answer with the problem."""
    headers = [("content-type", MEDIA_TYPE), *problem.headers.items()]
    await answer(send, problem.status, headers, problem.body(request_id_of(scope)))


async def answer(send: Send, status: int, headers: Iterable[tuple[str, str]], body: bytes = b"") -> None:
    """Answer with status, headers and body."""
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    encoded.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body, "more_body": False})
