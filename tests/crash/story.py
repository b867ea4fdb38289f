"""The refund story, told by a careful client: what it does, and what the server says in the end that happened."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, assert_never

from tests.crash.client import CONFLICT, Client, Refused

__all__ = ["Plot", "Told", "ask", "read_journal", "tell"]

STORY_S_MAX = 60.0
POLL_S = 0.01
AMOUNT_CENTS = 4_200
PAGE_SIZE = 100
GREETING = "Are you still there?"

Effects = Callable[[], list[dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """One conversation about an order. `delay_ms` is how long each tool takes, or the `slow` one alone."""

    order_id: str
    delay_ms: int = 0
    slow: str | None = None
    #: The approval comes as an answer to the wait, or as a run that resumes.
    #: Racing, it comes both ways at once, and either may win.
    approve_by: Literal["answer", "resume", "racing"] = "answer"
    #: A doubt is settled by somebody who looks at the effects file, or by the tool's verifier.
    settle_by: Literal["looking", "verify"] = "looking"

    @property
    def script(self) -> str:
        """What the customer's case asks of the offline model."""
        money: dict[str, Any] = {"amount_cents": AMOUNT_CENTS}
        return "\n".join(
            [
                f"call {self._call('lookup_order')}",
                f"parallel {self._call('check_policy', **money)}",
                f"parallel {self._call('email_customer', template='received')}",
                f"call {self._call('refund', **money)}",
                f"call {self._call('confirm')}",
            ]
        )

    def _call(self, tool: str, **more: Any) -> str:
        delay_ms = self.delay_ms if self.slow in (None, tool) else 0
        return f"{tool} {json.dumps({'order_id': self.order_id, **more, 'delay_ms': delay_ms})}"


@dataclass(slots=True, kw_only=True)
class Told:
    """A conversation that has come to its end, as the API shows it."""

    plot: Plot
    thread_id: str
    resolutions: list[str] = field(default_factory=list)  #: how doubts were settled, in order
    runs: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    journal: list[dict[str, Any]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)  #: of the case itself, without the greeting
    verdict: dict[str, Any] = field(default_factory=dict)


async def tell(
    client: Client, plot: Plot, effects: Effects, *, rival: Client | None = None, within_s: float = STORY_S_MAX
) -> Told:
    """Play the conversation to its end, greet the thread once more, and collect what the API says about it.

    `effects` reads the outside world: whoever settles a doubt looks there first. A `rival` is a client of another API
    process, through which the other one of two racing answers comes.
    """
    async with asyncio.timeout(within_s):
        thread_id, _ = await ask(client, plot)
        told = Told(plot=plot, thread_id=thread_id)
        (wait,) = await _moved(client, told, effects)
        await _approve(client, rival or client, told, wait, f"{plot.order_id}-approve")
        assert await _moved(client, told, effects) == []
        await _say(client, thread_id, GREETING, f"{plot.order_id}-greet")
        assert await _moved(client, told, effects) == []
        await _collect(client, told)
    return told


async def ask(client: Client, plot: Plot) -> tuple[str, str]:
    """Put the case to the agent; the ids of the thread and of the run. Asked again, it is the same ones."""
    thread = await client.post("/threads", {}, idempotency_key=f"{plot.order_id}-open")
    run = await _say(client, thread["thread_id"], plot.script, f"{plot.order_id}-ask")
    return thread["thread_id"], run["run_id"]


async def _say(client: Client, thread_id: str, text: str, idempotency_key: str) -> Any:
    said = {"messages": [{"role": "user", "content": text}]}
    run = {"assistant_id": "refund", "input": said, "stream_resumable": True}
    return await client.post(f"/threads/{thread_id}/runs", run, idempotency_key=idempotency_key)


async def _approve(client: Client, rival: Client, told: Told, wait: dict[str, Any], idempotency_key: str) -> None:
    path, answer = f"/waits/{wait['id']}/answer", {"answer": True}
    resume = {"assistant_id": "refund", "command": {"resume": {wait["id"]: True}}}
    runs = f"/threads/{told.thread_id}/runs"
    match told.plot.approve_by:
        case "answer":
            await client.post(path, answer, idempotency_key=idempotency_key)
        case "resume":
            await client.post(runs, resume, idempotency_key=idempotency_key)
        case "racing":
            one = client.post(path, answer, idempotency_key=f"{idempotency_key}-answer")
            other = rival.post(runs, resume, idempotency_key=f"{idempotency_key}-resume")
            outcomes = await asyncio.gather(one, other, return_exceptions=True)
            lost = [each for each in outcomes if isinstance(each, BaseException)]
            for each in lost:
                # The question was answered by the other one, and only that may refuse this one.
                if not isinstance(each, Refused) or each.status_code != CONFLICT:
                    raise each
            assert len(lost) == 1, f"of two answers to one question {2 - len(lost)} were taken"
        case other_way:
            assert_never(other_way)


async def _moved(client: Client, told: Told, effects: Effects) -> list[dict[str, Any]]:
    """Wait until the thread stands still, settling doubts on the way; the approvals that it asks for then."""
    while True:
        thread = await client.get(f"/threads/{told.thread_id}")
        asked = [each for task in thread["interrupts"].values() for each in task]
        doubts = [each["value"]["step_key"] for each in asked if each["value"]["kind"] == "in_doubt"]
        for step_key in doubts:
            await _settle(client, told, step_key, effects)
        if thread["status"] == "error":
            raise AssertionError(f"thread {told.thread_id} failed: {thread['error']}")
        if thread["status"] != "busy" and not doubts:
            return asked
        await asyncio.sleep(POLL_S)


async def _settle(client: Client, told: Told, step_key: str, effects: Effects) -> None:
    runs = await client.get(f"/threads/{told.thread_id}/runs", limit=PAGE_SIZE)
    parked = next((each for each in runs if each["status"] in ("pending", "running")), None)
    if parked is None:
        return
    paid = any(each["tool"] == "refund" and each["arguments"]["order_id"] == told.plot.order_id for each in effects())
    happened = {"order_id": told.plot.order_id, "amount_cents": AMOUNT_CENTS, "refunded": True}
    resolution: dict[str, Any] = {"outcome": "did_not_happen"}
    if told.plot.settle_by == "verify":
        resolution = {"outcome": "verify"}
    elif paid:
        resolution = {"outcome": "happened", "result": happened}
    await client.settle(f"/runs/{parked['run_id']}/steps/{step_key}/resolve", resolution)
    told.resolutions.append("happened" if paid else "did_not_happen")


async def _collect(client: Client, told: Told) -> None:
    path = f"/threads/{told.thread_id}"
    told.runs = await client.get(f"{path}/runs", limit=PAGE_SIZE)
    told.messages = (await client.get(f"{path}/state"))["values"]["messages"]
    told.verdict = await client.get(f"{path}/journal/verify")
    told.journal = await read_journal(client, told.thread_id)
    first_run = told.runs[-1]["run_id"]
    told.steps = (await client.get(f"/runs/{first_run}/steps"))["items"]


async def read_journal(client: Client, thread_id: str) -> list[dict[str, Any]]:
    """Every entry of the thread; the fields of its payload stand beside `seq`, `kind`, `at` and the others too."""
    entries: list[dict[str, Any]] = []
    after: int | None = 0
    while after is not None:
        page = await client.get(f"/threads/{thread_id}/journal", after=after, limit=PAGE_SIZE)
        entries += [{**entry["payload"], **entry} for entry in page["items"]]
        after = page["next"]
    return entries
