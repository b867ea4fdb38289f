"""A client that is killed in the middle of a stream and reconnects receives every event exactly once."""

import random

from tests.crash.doomed import DoomedServer
from tests.crash.launching import Launcher
from tests.crash.stream_client import StreamFollower, stream_errors
from tests.support.scenario import Plot, ask

EVENT_COUNT_MAX = 4
KILL_COUNT_MIN = 4
DELAY_MS = 150


async def test_a_killed_client_rejoins_and_receives_what_it_missed(launcher: Launcher) -> None:
    """The events before each kill and after the rejoin make up the whole stream, in order and without repeats."""
    async with DoomedServer(launcher) as server, server.kept_alive() as client:
        thread_id, run_id = await ask(client, Plot(order_id="streamed", delay_ms=DELAY_MS))
        follower = StreamFollower(
            client, server.port, server.key, server.folder / "received.jsonl", random.Random(7), EVENT_COUNT_MAX
        )

        received = await follower.follow(thread_id, run_id)

        replayed = await StreamFollower(
            client, server.port, server.key, server.folder / "replayed.jsonl", random.Random(7)
        ).follow(thread_id, run_id)
        assert stream_errors(received, replayed, server_died=False) == []
        assert follower.kill_count >= KILL_COUNT_MIN
