"""The refund story, played by a careful client, and the record that the server gives of it in the end."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, assert_never

from tests.crash.client import CONFLICT, Client, Refused

__all__ = ["Conversation", "Plot", "ask", "play", "read_journal"]

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
    #: A doubt is settled by a person who reads the effects file, or by the tool's verifier.
    settle_by: Literal["looking", "verify"] = "looking"

    @property
    def script(self) -> str:
        """The customer's case, as commands of the offline model."""
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
class Conversation:
    """A finished conversation, as the API shows it."""

    plot: Plot
    thread_id: str
    resolutions: list[str] = field(default_factory=list)  #: how doubts were settled, in order
    runs: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    journal: list[dict[str, Any]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)  #: of the case itself, without the greeting
    verdict: dict[str, Any] = field(default_factory=dict)


async def play(
    client: Client, plot: Plot, effects: Effects, *, rival: Client | None = None, within_s: float = STORY_S_MAX
) -> Conversation:
    """Play the conversation to its end, greet the thread once more, and collect what the API says about it.

    `effects` reads the outside world; it is read before a doubt is settled. A `rival` is a client of another API
    process, which sends the second of two racing answers.
    """
    async with asyncio.timeout(within_s):
        thread_id, _ = await ask(client, plot)
        conversation = Conversation(plot=plot, thread_id=thread_id)
        (wait,) = await _settled(client, conversation, effects)
        await _approve(client, rival or client, conversation, wait, f"{plot.order_id}-approve")
        assert await _settled(client, conversation, effects) == []
        await _say(client, thread_id, GREETING, f"{plot.order_id}-greet")
        assert await _settled(client, conversation, effects) == []
        await _collect(client, conversation)
    return conversation


async def ask(client: Client, plot: Plot) -> tuple[str, str]:
    """Send the case to the agent and return the ids of the thread and of the run; a repeat returns the same ids."""
    thread = await client.post("/threads", {}, idempotency_key=f"{plot.order_id}-open")
    run = await _say(client, thread["thread_id"], plot.script, f"{plot.order_id}-ask")
    return thread["thread_id"], run["run_id"]


async def _say(client: Client, thread_id: str, text: str, idempotency_key: str) -> Any:
    said = {"messages": [{"role": "user", "content": text}]}
    run = {"assistant_id": "refund", "input": said, "stream_resumable": True}
    return await client.post(f"/threads/{thread_id}/runs", run, idempotency_key=idempotency_key)


async def _approve(
    client: Client, rival: Client, conversation: Conversation, wait: dict[str, Any], idempotency_key: str
) -> None:
    path, answer = f"/waits/{wait['id']}/answer", {"answer": True}
    resume = {"assistant_id": "refund", "command": {"resume": {wait["id"]: True}}}
    runs = f"/threads/{conversation.thread_id}/runs"
    match conversation.plot.approve_by:
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
                # A conflict with the winning answer is the only valid refusal.
                if not isinstance(each, Refused) or each.status_code != CONFLICT:
                    raise each
            assert len(lost) == 1, f"of two answers to one question {2 - len(lost)} were taken"
        case other_way:
            assert_never(other_way)


async def _settled(client: Client, conversation: Conversation, effects: Effects) -> list[dict[str, Any]]:
    """Wait until the thread is idle, settling doubts on the way, and return the open approvals."""
    while True:
        thread = await client.get(f"/threads/{conversation.thread_id}")
        interrupts = [each for task in thread["interrupts"].values() for each in task]
        doubts = [each["value"]["step_key"] for each in interrupts if each["value"]["kind"] == "in_doubt"]
        for step_key in doubts:
            await _settle(client, conversation, step_key, effects)
        if thread["status"] == "error":
            raise AssertionError(f"thread {conversation.thread_id} failed: {thread['error']}")
        if thread["status"] != "busy" and not doubts:
            return interrupts
        await asyncio.sleep(POLL_S)


async def _settle(client: Client, conversation: Conversation, step_key: str, effects: Effects) -> None:
    runs = await client.get(f"/threads/{conversation.thread_id}/runs", limit=PAGE_SIZE)
    parked = next((each for each in runs if each["status"] in ("pending", "running")), None)
    if parked is None:
        return
    paid = any(
        each["tool"] == "refund" and each["arguments"]["order_id"] == conversation.plot.order_id for each in effects()
    )
    happened = {"order_id": conversation.plot.order_id, "amount_cents": AMOUNT_CENTS, "refunded": True}
    resolution: dict[str, Any] = {"outcome": "did_not_happen"}
    if conversation.plot.settle_by == "verify":
        resolution = {"outcome": "verify"}
    elif paid:
        resolution = {"outcome": "happened", "result": happened}
    await client.settle(f"/runs/{parked['run_id']}/steps/{step_key}/resolve", resolution)
    conversation.resolutions.append("happened" if paid else "did_not_happen")


async def _collect(client: Client, conversation: Conversation) -> None:
    path = f"/threads/{conversation.thread_id}"
    conversation.runs = await client.get(f"{path}/runs", limit=PAGE_SIZE)
    conversation.messages = (await client.get(f"{path}/state"))["values"]["messages"]
    conversation.verdict = await client.get(f"{path}/journal/verify")
    conversation.journal = await read_journal(client, conversation.thread_id)
    first_run = conversation.runs[-1]["run_id"]
    conversation.steps = (await client.get(f"/runs/{first_run}/steps"))["items"]


async def read_journal(client: Client, thread_id: str) -> list[dict[str, Any]]:
    """Every entry of the thread, with the fields of its payload merged beside `seq`, `kind`, `at` and the others."""
    entries: list[dict[str, Any]] = []
    after: int | None = 0
    while after is not None:
        page = await client.get(f"/threads/{thread_id}/journal", after=after, limit=PAGE_SIZE)
        entries += [{**entry["payload"], **entry} for entry in page["items"]]
        after = page["next"]
    return entries
