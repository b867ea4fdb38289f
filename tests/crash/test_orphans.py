"""A run whose server died goes on by itself in the next one."""

from tests.crash.client import Client
from tests.crash.doomed import DoomedServer
from tests.crash.launching import Launcher
from tests.support.waiting import wait_until

#: A sweep would find the orphan, and so would the end of the lease: neither comes while the test lasts.
NO_HELP = {"THREADMARK_SWEEP_S": "3600", "THREADMARK_LEASE_TTL_S": "3600", "THREADMARK_HEARTBEAT_S": "600"}
ENDLESS = 'call lookup_order {"order_id": "A1", "delay_ms": 100000}'


async def test_the_start_itself_takes_up_what_the_dead_left(launcher: Launcher) -> None:
    """No request, no sweep and no lease has to come first: the next server knows at once that the last one is dead."""
    async with DoomedServer(launcher, NO_HELP) as server:
        await server.start()
        async with Client(server.url, server.key) as client:
            thread = await client.post("/threads", {}, idempotency_key="open")
            run = {"assistant_id": "refund", "input": {"messages": [{"role": "user", "content": ENDLESS}]}}
            await client.post(f"/threads/{thread['thread_id']}/runs", run, idempotency_key="ask")
        await wait_until(server.effects, description="the first attempt")
        await server.end()

        await server.start()
        await wait_until(lambda: len(server.effects()) > 1, description="the second attempt")

        assert [line["attempt"] for line in server.effects()] == [1, 2]
        assert len({line["idempotency_key"] for line in server.effects()}) == 1
