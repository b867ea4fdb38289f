"""Long threads over HTTP, and what is asked of their compactions."""

from typing import Any

from tests.support.api import Api

__all__ = ["FACTS", "POLICY", "compacted", "long_thread", "receipt"]

#: What people of the threads have said; each binds somebody, or names an exact value.
FACTS = (
    "Never write to the production database.",
    "We decided to use PostgreSQL for the ledger.",
    "The budget is $47,500 and ends on December 4, 2026.",
    "Invoice INV-000412 goes to anna.smith@example.org.",
    "The export is in /srv/data/clients.csv, please keep it.",
    "I'll send the contract by June 22, 2026.",
)
_PADDING = "Here is what I found so far about the matter, which is plenty and of no great use to anybody. " * 8
#: A summary of a few words, so that something has to go.
POLICY = {"keep_last_turns": 1, "min_gain": 0.0, "summary_tokens": 60, "appendix_tokens": 400}


async def long_thread(api: Api, key: str, turn_count: int = 8) -> str:
    """A thread with so many turns: a fact, and an answer that goes on about nothing."""
    thread_id = str((await api.call("POST", "/threads", key, json={})).json()["thread_id"])
    messages: list[dict[str, Any]] = []
    for number in range(turn_count):
        asked = f"{FACTS[number % len(FACTS)]} And ticket OPS-{number} is open."
        messages += [
            {"type": "human", "content": asked},
            {
                "type": "ai",
                "content": f"Noted. {_PADDING} Case {number} took {number * 7 + 3} ms on db-{number}.example.com.",
            },
        ]
    for each in messages:
        written = await api.call("POST", f"/threads/{thread_id}/state", key, json={"values": {"messages": [each]}})
        assert written.status_code == 200, written.text
    return thread_id


async def compacted(api: Api, key: str, thread_id: str, **spec: Any) -> dict[str, Any]:
    """The receipt of a compaction that was waited for."""
    body = {"policy": POLICY, "wait": True, **spec}
    answered = await api.call("POST", f"/threads/{thread_id}/compactions", key, json=body)
    assert answered.status_code == 200, answered.text
    return dict(answered.json())


async def receipt(api: Api, key: str, path: str, **query: Any) -> Any:
    """What a GET answers."""
    answered = await api.call("GET", path, key, params=query)
    assert answered.status_code == 200, answered.text
    return answered.json()
