"""Questions to people in tests: ask one, see what became of it, and look at what reached the outside world."""

import json
from typing import Any

from tests.support.service import Service
from tests.support.waiting import wait_until

__all__ = ["PARALLEL", "Asked", "ask", "done", "settled", "waits"]

Asked = list[dict[str, Any]]
FIRST = {"order_id": "A1", "amount_cents": 100}
SECOND = {"order_id": "A2", "amount_cents": 200}
PARALLEL = "\n".join(f"parallel refund {json.dumps(each)}" for each in (FIRST, SECOND))


async def ask(service: Service, text: str) -> tuple[str, Asked]:
    """A thread whose agent asks before it does what the text says; its id, and its questions as the calls stand."""
    async with service.sdk() as sdk:
        thread_id = (await sdk.threads.create())["thread_id"]
        await sdk.runs.wait(thread_id, "refund", input={"messages": text})
    return thread_id, await waits(service, thread_id)


async def waits(service: Service, thread_id: str) -> Asked:
    """The questions of a thread, by the step that asks."""
    async with service.http() as http:
        response = await http.get(f"/threads/{thread_id}/waits")
    return sorted(response.json()["items"], key=lambda wait: str(wait["step_key"]))


async def settled(service: Service, thread_id: str) -> list[dict[str, Any]]:
    """The runs of a thread, oldest first, once none of them goes on."""
    async with service.sdk() as sdk:

        async def ended() -> list[Any]:
            runs = await sdk.runs.list(thread_id, limit=100)
            return [] if any(run["status"] in ("pending", "running") for run in runs) else list(reversed(runs))

        return await wait_until(ended, description="every run of the thread to end")


def done(service: Service, order_id: str) -> list[str]:
    """The tools that reached the outside world for an order, in the order in which they did."""
    effects = service.data_dir / "effects.jsonl"
    lines = [json.loads(line) for line in effects.read_text().splitlines()] if effects.exists() else []
    return [line["tool"] for line in lines if line["arguments"]["order_id"] == order_id]
