"""Server-sent events on the wire."""

import re

__all__ = ["HEARTBEAT", "frame"]

#: A comment: it keeps proxies from closing a quiet stream, and readers skip it.
HEARTBEAT = b": heartbeat\r\n\r\n"

_NAME = re.compile(r"[a-z/]{1,64}")
_ID = re.compile(r"[0-9-]{1,32}")


def frame(name: str, data: bytes, event_id: str | None) -> bytes:
    """One event. `data` is one line; raises ValueError for anything that could end a field early."""
    if b"\n" in data or b"\r" in data or not _NAME.fullmatch(name) or not (event_id is None or _ID.fullmatch(event_id)):
        raise ValueError(f"an event {name!r} with a line end inside would be read as something else")
    head = b"event: " + name.encode() + b"\r\ndata: " + data + b"\r\n"
    return head + (b"\r\n" if event_id is None else b"id: " + event_id.encode() + b"\r\n\r\n")
