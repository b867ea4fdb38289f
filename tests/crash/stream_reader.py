"""A client in a process of its own, to be killed: `python stream_reader.py HOST PORT PATH KEY FILE COUNT`.

It streams a run and adds every event that has an id to FILE, one JSON line each. An earlier one that was killed left
the file; this one goes on behind its last whole line. It is killed behind the COUNT-th event that it hears (0: never),
ends with 0 when the stream ended in order, and with 3 when it broke, or the server asked it
to come later.
"""

import http.client
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

BROKEN = 3
SILENCE_S_MAX = 30
READ_BYTES = 65_536


def main() -> int:
    """Stream until the end; the exit code."""
    host, port, path, key, file, count = sys.argv[1:]
    last_id = _mended(Path(file))
    output = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    connection = http.client.HTTPConnection(host, int(port), timeout=SILENCE_S_MAX)
    try:
        connection.request("GET", path, headers={"x-api-key": key, "last-event-id": last_id})
        response = connection.getresponse()
        if response.status == http.client.SERVICE_UNAVAILABLE and response.getheader("retry-after"):
            return BROKEN
        if response.status != http.client.OK:
            print(f"{path}: {response.status} {response.read()!r}", file=sys.stderr)
            return 1
        for ordinal, event in enumerate(_events(response), start=1):
            os.write(output, json.dumps(event).encode() + b"\n")
            if ordinal == int(count):
                os.kill(os.getpid(), signal.SIGKILL)
    except (OSError, http.client.HTTPException):
        return BROKEN
    return 0


def _mended(file: Path) -> str:
    """The id of the last event that was written whole; a line that a kill cut short is cut off."""
    data = file.read_bytes() if file.exists() else b""
    whole = data[: data.rfind(b"\n") + 1]
    if whole != data:
        file.write_bytes(whole)
    lines = whole.splitlines()
    return str(json.loads(lines[-1])["id"]) if lines else "0"


def _events(response: http.client.HTTPResponse) -> Iterator[dict[str, str]]:
    fields: dict[str, str] = {}
    for line in _lines(response):
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        else:
            if "id" in fields:
                yield fields
            fields = {}


def _lines(response: http.client.HTTPResponse) -> Iterator[str]:
    unread = b""
    # Not its readline: that takes a connection that broke for the end of the stream.
    while data := response.read1(READ_BYTES):
        *lines, unread = (unread + data).split(b"\n")
        yield from (line.decode().rstrip("\r") for line in lines)


if __name__ == "__main__":
    sys.exit(main())
