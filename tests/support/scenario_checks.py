"""Compares a conversation that went through crashes with an undisturbed one, and names each broken promise. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from tests.crash.doomed import Death
from tests.support.scenario import Conversation

__all__ = ["violations"]

Line = Mapping[str, Any]
_DELAY = re.compile(r"(?<=delay_ms.: )\d+")


def violations(
    conversation: Conversation, lines: Sequence[Line], deaths: Sequence[Death], expected: Conversation
) -> list[str]:
    """Return one sentence for each broken promise; the list is empty if nothing was lost and nothing done twice.

    `lines` is the whole effects file; `deaths` are the server's crashes, in order; `expected` was never interrupted.
    """
    own = [
        (index, line) for index, line in enumerate(lines) if line["arguments"]["order_id"] == conversation.plot.order_id
    ]
    return [
        *_unfinished(conversation),
        *_damaged(conversation),
        *_transcript(conversation, expected),
        *_keys(conversation, own),
        *_performed_again(conversation, own, deaths),
        *_once(conversation, own),
    ]


def _unfinished(conversation: Conversation) -> Iterator[str]:
    for run in conversation.runs:
        if run["status"] != "success":
            yield f"run {run['run_id']} is {run['status']}"
    for step in conversation.steps:
        if step["status"] != "recorded":
            yield f"step {step['key']} is {step['status']}"


def _damaged(conversation: Conversation) -> Iterator[str]:
    if not conversation.verdict["holds"]:
        yield f"the journal does not verify: {conversation.verdict}"
    seqs = [entry["seq"] for entry in conversation.journal]
    if seqs != list(range(1, len(seqs) + 1)):
        yield f"the journal is not dense: {seqs}"


def _transcript(conversation: Conversation, expected: Conversation) -> Iterator[str]:
    found, wanted = _messages(conversation), _messages(expected)
    if found != wanted:
        yield f"the transcript is {found} and not {wanted}"


def _messages(conversation: Conversation) -> list[tuple[Any, ...]]:
    """The messages, with ids replaced by their ordinals and the order's id by a constant."""
    names: dict[str, int] = {}
    messages = []
    for each in conversation.messages:
        calls = [
            (names.setdefault(call["id"], len(names)), call["name"], _neutral(call["args"], conversation))
            for call in each.get("tool_calls", [])
        ]
        answers = names.get(each["tool_call_id"]) if each["type"] == "tool" else None
        usage = each.get("usage_metadata") and sorted(each["usage_metadata"])
        messages.append(
            (
                each["type"],
                each["name"],
                _neutral(each["content"], conversation),
                calls,
                answers,
                each.get("status"),
                usage,
            )
        )
    return messages


def _neutral(value: Any, conversation: Conversation) -> str:
    """The value as text, without what differs from plot to plot."""
    return _DELAY.sub("<delay>", str(value).replace(conversation.plot.order_id, "<order>"))


def _keys(conversation: Conversation, own: Sequence[tuple[int, Line]]) -> Iterator[str]:
    """Each step keeps one key over all its attempts, and no two steps share one."""
    keys: defaultdict[str, set[str]] = defaultdict(set)
    attempts: defaultdict[str, list[int]] = defaultdict(list)
    for _, line in own:
        keys[line["tool"]].add(line["idempotency_key"])
        attempts[line["tool"]].append(line["attempt"])
    for tool, found in keys.items():
        if len(found) != 1:
            yield f"{tool} was called with the keys {sorted(found)}"
    if len(set().union(*keys.values())) < len(keys):
        yield f"two steps share a key: {dict(keys)}"
    for tool, ordinals in attempts.items():
        if ordinals != sorted(set(ordinals)):
            yield f"the attempts of {tool} are numbered {ordinals}"
    for step in conversation.steps:
        if step["kind"] == "tool" and keys[step["name"]] - {step["idempotency_key"]}:
            yield f"{step['name']} has the key {step['idempotency_key']} and was called with {keys[step['name']]}"
    for entry in _entries(conversation, "step_intended"):
        if entry["idempotency_key"] not in {step["idempotency_key"] for step in conversation.steps}:
            yield f"an intent has the key {entry['idempotency_key']}, which no step has"


def _performed_again(
    conversation: Conversation, own: Sequence[tuple[int, Line]], deaths: Sequence[Death]
) -> Iterator[str]:
    """A result that was on disk at a crash was not computed again."""
    for entry in _entries(conversation, "tool_returned"):
        performed = [(index, line["attempt"]) for index, line in own if line["tool"] == entry["tool"]]
        recorded_at_s = datetime.fromisoformat(entry["at"]).timestamp()
        for death in deaths:
            later = [attempt for index, attempt in performed if index >= death.line_count]
            if recorded_at_s < death.noticed_at_s and later:
                yield f"{entry['tool']} was recorded before a crash and performed again after it: attempts {later}"
        last = max((attempt for _, attempt in performed), default=0)
        if entry.get("resolved_by") is None and last != entry.get("attempt", 1):
            yield f"{entry['tool']} has the result of attempt {entry.get('attempt', 1)}, and attempt {last} was made"
    yield from _recorded_twice(conversation)


def _recorded_twice(conversation: Conversation) -> Iterator[str]:
    """A step has one result in its execution, over any number of turns."""
    execution_id, seen = "", set()
    for entry in conversation.journal:
        execution_id = entry.get("execution_id", execution_id)
        if entry["kind"] in ("tool_returned", "model_replied"):
            step = execution_id, entry["step_key"]
            if step in seen:
                yield f"step {step} has two results"
            seen.add(step)


def _once(conversation: Conversation, own: Sequence[tuple[int, Line]]) -> Iterator[str]:
    """The refund was paid exactly once."""
    paid_count = sum(line["tool"] == "refund" for _, line in own)
    if paid_count != 1:
        yield f"the refund was paid {paid_count} times; doubts were settled as {conversation.resolutions}"


def _entries(conversation: Conversation, *kinds: str) -> Iterator[dict[str, Any]]:
    return (entry for entry in conversation.journal if entry["kind"] in kinds)
