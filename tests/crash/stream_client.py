"""Follows the stream of a run through clients that are killed, and checks that no event was lost or repeated."""

import asyncio
import json
import random
import signal
import sys
from pathlib import Path

from tests.crash.client import Client
from tests.crash.stream_reader import BROKEN
from tests.support.daemon import Identity, launched

__all__ = ["StreamFollower", "events_in", "stream_errors"]

READER = Path(__file__).with_name("stream_reader.py")
MODES = ("values", "updates", "messages-tuple", "custom")
#: Slots of what streams between two entries; below are those of the entries themselves.
FLASH_SLOT = 10
UNSETTLED = ("pending", "running")
PAUSE_S = 0.01

Events = list[dict[str, str]]


class StreamFollower:
    """Follows one run and keeps the events it receives in `file`.

    It reads through processes, each of which is killed at a random event, the `event_count_max`-th at the latest;
    0: none is killed.
    """

    def __init__(
        self, client: Client, port: int, key: str, file: Path, chance: random.Random, event_count_max: int = 0
    ) -> None:
        self._client = client
        self._port = port
        self._key = key
        self._file = file
        self._chance = chance
        self._event_count_max = event_count_max
        self.kill_count = 0

    async def follow(self, thread_id: str, run_id: str) -> Events:
        """Follow the run to its end and return its events in the order in which they were received."""
        path = f"/threads/{thread_id}/runs/{run_id}"
        while True:
            is_done = await self._read(f"{path}/stream?{_query()}")
            if is_done and (await self._client.get(path))["status"] not in UNSETTLED:
                return events_in(self._file)
            await asyncio.sleep(PAUSE_S)

    async def _read(self, path: str) -> bool:
        """Run one reader process; whether it reached the end of the stream."""
        own = [sys.executable, "-I", "-S", str(READER), "127.0.0.1", str(self._port), path]
        own += [self._key, str(self._file), str(self._event_limit())]
        process = await asyncio.create_subprocess_exec(*launched(own, Identity.own(), signal.SIGKILL))
        code = await process.wait()
        assert code in (0, BROKEN, -signal.SIGKILL), f"the reader exited with {code}"
        self.kill_count += code == -signal.SIGKILL
        return code == 0

    def _event_limit(self) -> int:
        return self._chance.randint(1, self._event_count_max) if self._event_count_max else 0


def _query() -> str:
    return "&".join(f"stream_mode={mode}" for mode in MODES)


def events_in(file: Path) -> Events:
    """The events in a reader's file."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def stream_errors(received: Events, replayed: Events, *, server_died: bool) -> list[str]:
    """Compare the events `received` with those that the server replays in the end; one sentence for each difference.

    An event may be received and never replayed only if the server died before it recorded the event: words of a reply
    that was requested again, events of a tool that was called again.
    """
    known = {event["id"]: event for event in replayed}
    kept = [event for event in received if event["id"] in known]
    lost = [event for event in received if event["id"] not in known]
    errors = []
    if kept != replayed:
        errors.append(f"received {[event['id'] for event in kept]}, replayed {[event['id'] for event in replayed]}")
    if lost and not server_died:
        errors.append(f"received what was never recorded: {lost}")
    errors += [
        f"an entry was received and lost: {event}" for event in lost if int(event["id"].split("-")[1]) < FLASH_SLOT
    ]
    ids = [event["id"] for event in received]
    if len(set(ids)) != len(ids):
        errors.append(f"received twice: {ids}")
    return errors
