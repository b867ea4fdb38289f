"""The API as any program uses it: JSON over HTTP, and streams of server-sent events."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx2

__all__ = ["Api", "Event", "StreamBroke"]

ANSWER_S_MAX = 60.0


class StreamBroke(Exception):
    """The connection ended in the middle of a stream; the event's id from before is where to go on."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a run's stream."""

    name: str
    data: Any
    id: str | None


class Api:
    """A client with a key. Use it in a `with`."""

    def __init__(self, url: str, key: str) -> None:
        self._http = httpx2.Client(base_url=url, headers={"X-Api-Key": key}, timeout=ANSWER_S_MAX)

    def get(self, path: str) -> Any:
        """What is there. Raises HTTPStatusError."""
        return self._http.get(path).raise_for_status().json()

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """What came of it. Raises HTTPStatusError."""
        return self._http.post(path, json=body).raise_for_status().json()

    def start(self, path: str, body: Mapping[str, Any]) -> Iterator[Event]:
        """Start a run and stream it. Raises StreamBroke when the server goes away before the end."""
        return self._stream("POST", path, json=body)

    def rejoin(self, path: str, after_id: str) -> Iterator[Event]:
        """Stream a run from behind an event. Raises StreamBroke."""
        return self._stream("GET", path, headers={"Last-Event-ID": after_id})

    def _stream(self, method: str, path: str, **request: Any) -> Iterator[Event]:
        try:
            with self._http.stream(method, path, **request) as response:
                response.raise_for_status()
                yield from _events(response.iter_lines())
        except httpx2.TransportError as error:
            raise StreamBroke(path) from error

    def __enter__(self) -> Self:
        self._http.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.__exit__(kind, error, at)


def _events(lines: Iterator[str]) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield Event(fields["event"], json.loads(fields["data"]), fields.get("id"))
            fields = {}
