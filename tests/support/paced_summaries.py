"""A thread of some chunks, and a model that condenses each of them when the test lets it."""

import re
from typing import Any

from tests.crash.client import Client
from tests.support.bad_summarisers import under_headings
from tests.support.compacting import FACTS
from tests.support.paced_model import PacedCall, PacedModel

__all__ = ["ORDER", "answer", "chunk_of", "finish", "talk"]

TURN_COUNT = 6
FILLER = "Here is what I found so far about the matter, which is plenty and of no great use to anybody. " * 8
ORDER: dict[str, Any] = {
    "policy": {"keep_last_turns": 1, "min_gain": 0.0, "chunk_tokens": 500, "appendix_tokens": 2_000, "promote": False},
    "summariser": "model",
}
_LINE = re.compile(r"^\[(\d+)\] \w+ \(\w+\): (.*)$", re.MULTILINE)
_MARK = re.compile(r"<<<(transcript-[0-9a-f]{16})")


async def talk(client: Client) -> str:
    """A thread with enough of a past for some chunks."""
    thread_id = str((await client.post("/threads", {}, idempotency_key="thread"))["thread_id"])
    for turn in range(TURN_COUNT):
        said = [
            {"type": "human", "content": FACTS[turn % len(FACTS)]},
            {"type": "ai", "content": f"Noted, as case {turn}. {FILLER}"},
        ]
        for each in said:
            body = {"values": {"messages": [each]}}
            await client.post(f"/threads/{thread_id}/state", body, idempotency_key=f"{turn}-{each['type']}")
    return thread_id


def chunk_of(call: PacedCall) -> str:
    """What names the chunk that the model is asked about."""
    (mark,) = set(_MARK.findall(str(call.body["messages"])))
    return str(mark)


async def answer(call: PacedCall) -> None:
    """Every third line of the record, under the headings of the schema."""
    user = next(each["content"] for each in call.body["messages"] if each["role"] == "user")
    lines = [f"- [{seq}] {text[:200]}" for seq, text in _LINE.findall(user) if text]
    await call.say(under_headings(lines[::3] or lines))
    await call.end()


async def finish(model: PacedModel, asked: list[str], answered: list[str], *, timeout_s: float) -> None:
    """Answer whatever is asked from now on."""
    while True:
        call = await model.next_call(timeout_s)
        asked.append(chunk_of(call))
        await answer(call)
        answered.append(asked[-1])
