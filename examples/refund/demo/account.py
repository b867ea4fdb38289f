"""The account of the story: who did which step how often, what it cost, and whether all promises were kept. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["HEAD", "broken_promises", "rows", "servers"]

HEAD = ("step", "what", "effect", "attempts", "recorded by", "calls outside", "tokens")
Step = Mapping[str, Any]
Line = Mapping[str, Any]
_CALLS_MAX = {"lookup_order": 1, "check_policy": 1, "email_customer": 2, "refund": 1, "confirm": 1}


def servers(steps: Sequence[Step]) -> dict[str, str]:
    """A letter for each worker, in the order in which they came."""
    ids = dict.fromkeys(worker_id for step in steps for worker_id in step["worker_ids"])
    return {worker_id: chr(ord("A") + number) for number, worker_id in enumerate(ids)}


def rows(steps: Sequence[Step], lines: Sequence[Line]) -> list[tuple[str, ...]]:
    """A row for each step."""
    letters, calls = servers(steps), _calls(lines)
    return [
        (
            step["key"],
            step["name"],
            step["effect"] or "-",
            " ".join(f"{each['attempt']}:{letters[each['worker_id']]}" for each in step["attempts"]),
            step["resolved_by"] or letters[step["worker_ids"][-1]],
            str(calls[step["idempotency_key"]]) if step["kind"] == "tool" else "-",
            str(step["tokens"]["total_tokens"]) if step["tokens"] else "-",
        )
        for step in steps
    ]


def broken_promises(
    told: Mapping[str, Any], lines: Sequence[Line], *, last_words: str, journal_holds: bool
) -> Iterator[str]:
    """Every sentence is a promise that was not kept."""
    if not last_words.startswith("Done."):
        yield f"The agent did not finish; it said: {last_words!r}"
    if not journal_holds:
        yield "The hash chain of the journal is broken."
    for step in told["items"]:
        if step["status"] != "recorded":
            yield f"Step {step['key']} ({step['name']}) is {step['status']}."
    found = Counter(line["tool"] for line in lines)
    for tool, count_max in _CALLS_MAX.items():
        if not 1 <= found[tool] <= count_max:
            yield f"{tool} was called {found[tool]} times."
    if len(_calls(lines)) != len(found):
        yield f"Attempts of one step had different idempotency keys: {lines}"
    if not told["totals"]["tokens_saved_by_replay"]:
        yield "The second server paid for model calls that the first one had recorded."


def _calls(lines: Sequence[Line]) -> Counter[str]:
    return Counter(line["idempotency_key"] for line in lines)
