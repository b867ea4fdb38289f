"""A careful client: where the server died or failed before it answered, it asks again with the same idempotency key."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

import httpx2

__all__ = ["CONFLICT", "Client", "Refused"]

ANSWER_S_MAX = 60.0
REQUEST_S_MAX = 20.0
RETRY_S = 0.01
CONFLICT = 409
BROKEN, UNAVAILABLE = 500, 503
#: The server failed, or its database was away: asked again with the same key, it answers once.
FAILED = (BROKEN, UNAVAILABLE)


class Refused(AssertionError):
    """The server answered, and the answer is not what the story needs."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__(f"{response.request.method} {response.url.path}: {response.status_code} {response.text}")
        self.status_code = response.status_code


class Client:
    """JSON in, JSON out, whatever happens to the server in between. Use it in an `async with`."""

    def __init__(self, url: str, key: str) -> None:
        self._http = httpx2.AsyncClient(base_url=url, timeout=REQUEST_S_MAX, headers={"x-api-key": key}, verify=False)
        self.retry_count = 0
        #: Answers that no fault excuses: a 500, and a 503 that does not say when to ask again.
        self.complaints: list[str] = []

    async def get(self, path: str, **parameters: Any) -> Any:
        """What is there. Raises Refused."""
        response, _ = await self._answer(lambda: self._http.get(path, params=parameters))
        return _body_of(response)

    async def post(self, path: str, body: Any, *, idempotency_key: str) -> Any:
        """What came of it, once, however often it had to be asked. Raises Refused."""
        headers = {"idempotency-key": idempotency_key}
        response, _ = await self._answer(lambda: self._http.post(path, json=body, headers=headers))
        return _body_of(response)

    async def settle(self, path: str, body: Any) -> None:
        """Ask for a change that can be made once. After a lost answer, a conflict says that it was made."""
        response, is_repeated = await self._answer(lambda: self._http.post(path, json=body))
        if not (is_repeated and response.status_code == CONFLICT):
            _body_of(response)

    def lost(self, error: Exception) -> None:
        """A request got no answer."""
        self.retry_count += 1

    async def _answer(self, ask: Callable[[], Awaitable[httpx2.Response]]) -> tuple[httpx2.Response, bool]:
        deadline = time.monotonic() + ANSWER_S_MAX
        is_repeated = False
        while True:
            try:
                response = await ask()
            except httpx2.TransportError as error:
                if time.monotonic() > deadline:
                    raise AssertionError(f"no answer within {ANSWER_S_MAX:g} s") from error
                self.lost(error)
                is_repeated = True
            else:
                self._judge(response)
                if response.status_code in FAILED:
                    is_repeated = True
                elif response.status_code != CONFLICT or "retry-after" not in response.headers:
                    return response, is_repeated
            await asyncio.sleep(RETRY_S)

    def _judge(self, response: httpx2.Response) -> None:
        is_hintless = response.status_code == UNAVAILABLE and "retry-after" not in response.headers
        if response.status_code == BROKEN or is_hintless:
            self.complaints.append(str(Refused(response)))

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._http.__aexit__(kind, error, at)


def _body_of(response: httpx2.Response) -> Any:
    if not response.is_success:
        raise Refused(response)
    return response.json() if response.content else None
