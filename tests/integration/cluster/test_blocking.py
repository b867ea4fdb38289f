"""A tool that blocks the event loop for several leases: its worker is late, and not dead (F09)."""

from tests.crash.client import Client
from tests.support.cluster import Cluster
from tests.support.scenario import read_journal
from tests.support.servers import PrivatePostgres, PrivateRedis
from tests.support.waiting import wait_until

LEASE_TTL_S = 2.0
HEARTBEAT_S = 0.5
BLOCKED_S = 3 * LEASE_TTL_S


async def test_a_blocked_worker_keeps_its_runs(
    postgres_of_the_fleet: PrivatePostgres, fleet_redis: PrivateRedis
) -> None:
    """The lease has a thread of its own: no other worker takes the run, and its step is done once."""
    settings = {
        "THREADMARK_AGENTS": "tests.integration.cluster.blocking:registry",
        "THREADMARK_LEASE_TTL_S": str(LEASE_TTL_S),
        "THREADMARK_HEARTBEAT_S": str(HEARTBEAT_S),
        "THREADMARK_SWEEP_S": "0.2",
    }
    with postgres_of_the_fleet.fresh_database() as url, Cluster(url, fleet_redis.url, **settings) as cluster:
        cluster.work(2)
        api = cluster.serve()
        cluster.await_all()
        async with Client(api.url, cluster.key) as client:
            thread = await client.post("/threads", {}, idempotency_key="open")
            said = {"messages": [{"role": "user", "content": f'call block {{"seconds": {BLOCKED_S}}}'}]}
            run = await client.post(
                f"/threads/{thread['thread_id']}/runs",
                {"assistant_id": "chat", "input": said},
                idempotency_key="ask",
            )
            path = f"/threads/{thread['thread_id']}/runs/{run['run_id']}"

            async def is_over() -> bool:
                return bool((await client.get(path))["status"] == "success")

            await wait_until(is_over, description="the run to end", timeout_s=60)
            journal = await read_journal(client, thread["thread_id"])

    assert [entry["attempt"] for entry in journal if entry["kind"] == "turn_started"] == [1]
    assert [entry.get("attempt", 1) for entry in journal if entry["kind"] == "tool_returned"] == [1]
