"""A client that is killed in the middle of a stream, and comes back, has heard in the end what it would have heard."""

import random

from tests.crash.doomed import DoomedServer
from tests.crash.launching import Launcher
from tests.crash.listening import Listening, mishearings
from tests.crash.story import Plot, ask

EVENT_COUNT_MAX = 4
KILL_COUNT_MIN = 4
DELAY_MS = 150


async def test_a_killed_client_rejoins_and_hears_what_it_missed(launcher: Launcher) -> None:
    """What was heard before each kill and after the rejoin behind it is the whole stream, nothing twice, in order."""
    async with DoomedServer(launcher) as server, server.kept_alive() as client:
        thread_id, run_id = await ask(client, Plot(order_id="streamed", delay_ms=DELAY_MS))
        listening = Listening(
            client, server.port, server.key, server.folder / "heard.jsonl", random.Random(7), EVENT_COUNT_MAX
        )

        heard = await listening.hear(thread_id, run_id)

        told = await Listening(client, server.port, server.key, server.folder / "told.jsonl", random.Random(7)).hear(
            thread_id, run_id
        )
        assert mishearings(heard, told, server_died=False) == []
        assert listening.kill_count >= KILL_COUNT_MIN
