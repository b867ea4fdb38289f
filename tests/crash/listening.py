"""Somebody who listens to a run, is killed again and again, and wants to have heard everything in the end."""

import asyncio
import json
import random
import signal
import sys
from pathlib import Path

from tests.crash.client import Client
from tests.crash.listener import BROKEN
from tests.support.daemon import Identity, launched

__all__ = ["Listening", "heard_in", "mishearings"]

LISTENER = Path(__file__).with_name("listener.py")
MODES = ("values", "updates", "messages-tuple", "custom")
#: Slots of what streams between two entries; below are those of the entries themselves.
FLASH_SLOT = 10
UNSETTLED = ("pending", "running")
PAUSE_S = 0.01

Heard = list[dict[str, str]]


class Listening:
    """Listens to one run and keeps what it hears in `file`.

    It does so through processes that are killed by the `event_count_max`-th event at the latest, as chance decides;
    0: by none.
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

    async def hear(self, thread_id: str, run_id: str) -> Heard:
        """Every event that was told, in the order in which it was heard, when the run is over."""
        path = f"/threads/{thread_id}/runs/{run_id}"
        while True:
            is_done = await self._listen(f"{path}/stream?{_query()}")
            if is_done and (await self._client.get(path))["status"] not in UNSETTLED:
                return heard_in(self._file)
            await asyncio.sleep(PAUSE_S)

    async def _listen(self, path: str) -> bool:
        """Whether the stream came to its end within this process's life."""
        own = [sys.executable, "-I", "-S", str(LISTENER), "127.0.0.1", str(self._port), path]
        own += [self._key, str(self._file), str(self._events_of_a_life())]
        process = await asyncio.create_subprocess_exec(*launched(own, Identity.own(), signal.SIGKILL))
        code = await process.wait()
        assert code in (0, BROKEN, -signal.SIGKILL), f"the listener ended with {code}"
        self.kill_count += code == -signal.SIGKILL
        return code == 0

    def _events_of_a_life(self) -> int:
        return self._chance.randint(1, self._event_count_max) if self._event_count_max else 0


def _query() -> str:
    return "&".join(f"stream_mode={mode}" for mode in MODES)


def heard_in(file: Path) -> Heard:
    """What a file of a listener has."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def mishearings(heard: Heard, told: Heard, *, server_died: bool) -> list[str]:
    """What is wrong with what was heard, beside what the server tells of the run in the end.

    Only what a server had told and died before recording may be heard and never be told again: words of a reply that
    was asked for once more, events of a tool that was called once more.
    """
    known = {event["id"]: event for event in told}
    kept = [event for event in heard if event["id"] in known]
    lost = [event for event in heard if event["id"] not in known]
    wrong = []
    if kept != told:
        wrong.append(f"heard {[event['id'] for event in kept]}, told {[event['id'] for event in told]}")
    if lost and not server_died:
        wrong.append(f"heard what was never recorded: {lost}")
    wrong += [f"an entry was heard and lost: {event}" for event in lost if int(event["id"].split("-")[1]) < FLASH_SLOT]
    ids = [event["id"] for event in heard]
    if len(set(ids)) != len(ids):
        wrong.append(f"heard twice: {ids}")
    return wrong
