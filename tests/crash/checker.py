"""What must hold of a conversation that was crashed into, beside one that was not. Pure; it names what does not."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from tests.crash.doomed import Death
from tests.crash.story import Told

__all__ = ["violations"]

Line = Mapping[str, Any]
_DELAY = re.compile(r"(?<=delay_ms.: )\d+")


def violations(told: Told, lines: Sequence[Line], deaths: Sequence[Death], expected: Told) -> list[str]:
    """Every sentence is a promise that was broken; none is a conversation that lost nothing and did nothing twice.

    `lines` is the whole effects file; `deaths` are the ends of the server, in order; `expected` was never interrupted.
    """
    own = [(index, line) for index, line in enumerate(lines) if line["arguments"]["order_id"] == told.plot.order_id]
    return [
        *_unfinished(told),
        *_damaged(told),
        *_transcript(told, expected),
        *_keys(told, own),
        *_performed_again(told, own, deaths),
        *_once(told, own),
    ]


def _unfinished(told: Told) -> Iterator[str]:
    for run in told.runs:
        if run["status"] != "success":
            yield f"run {run['run_id']} is {run['status']}"
    for step in told.steps:
        if step["status"] != "recorded":
            yield f"step {step['key']} is {step['status']}"


def _damaged(told: Told) -> Iterator[str]:
    if not told.verdict["holds"]:
        yield f"the journal does not verify: {told.verdict}"
    seqs = [entry["seq"] for entry in told.journal]
    if seqs != list(range(1, len(seqs) + 1)):
        yield f"the journal is not dense: {seqs}"


def _transcript(told: Told, expected: Told) -> Iterator[str]:
    found, wanted = _spoken(told), _spoken(expected)
    if found != wanted:
        yield f"the transcript is {found} and not {wanted}"


def _spoken(told: Told) -> list[tuple[Any, ...]]:
    """What was said, with ids replaced by their order and the order's id by a constant."""
    names: dict[str, int] = {}
    spoken = []
    for each in told.messages:
        calls = [
            (names.setdefault(call["id"], len(names)), call["name"], _neutral(call["args"], told))
            for call in each.get("tool_calls", [])
        ]
        answers = names.get(each["tool_call_id"]) if each["type"] == "tool" else None
        usage = each.get("usage_metadata") and sorted(each["usage_metadata"])
        spoken.append(
            (each["type"], each["name"], _neutral(each["content"], told), calls, answers, each.get("status"), usage)
        )
    return spoken


def _neutral(value: Any, told: Told) -> str:
    """As text, without what differs from plot to plot."""
    return _DELAY.sub("<delay>", str(value).replace(told.plot.order_id, "<order>"))


def _keys(told: Told, own: Sequence[tuple[int, Line]]) -> Iterator[str]:
    """One key for each step over all its attempts, and another one for each other step."""
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
    for step in told.steps:
        if step["kind"] == "tool" and keys[step["name"]] - {step["idempotency_key"]}:
            yield f"{step['name']} has the key {step['idempotency_key']} and was called with {keys[step['name']]}"
    for entry in _entries(told, "step_intended"):
        if entry["idempotency_key"] not in {step["idempotency_key"] for step in told.steps}:
            yield f"an intent has the key {entry['idempotency_key']}, which no step has"


def _performed_again(told: Told, own: Sequence[tuple[int, Line]], deaths: Sequence[Death]) -> Iterator[str]:
    """A result that was on disk when the server died was not asked for again."""
    for entry in _entries(told, "tool_returned"):
        performed = [(index, line["attempt"]) for index, line in own if line["tool"] == entry["tool"]]
        recorded_at_s = datetime.fromisoformat(entry["at"]).timestamp()
        for death in deaths:
            later = [attempt for index, attempt in performed if index >= death.line_count]
            if recorded_at_s < death.noticed_at_s and later:
                yield f"{entry['tool']} was recorded before a crash and performed again after it: attempts {later}"
        last = max((attempt for _, attempt in performed), default=0)
        if entry.get("resolved_by") is None and last != entry.get("attempt", 1):
            yield f"{entry['tool']} has the result of attempt {entry.get('attempt', 1)}, and attempt {last} was made"
    yield from _recorded_twice(told)


def _recorded_twice(told: Told) -> Iterator[str]:
    """A step has one result in its execution, however many turns that took."""
    execution_id, seen = "", set()
    for entry in told.journal:
        execution_id = entry.get("execution_id", execution_id)
        if entry["kind"] in ("tool_returned", "model_replied"):
            step = execution_id, entry["step_key"]
            if step in seen:
                yield f"step {step} has two results"
            seen.add(step)


def _once(told: Told, own: Sequence[tuple[int, Line]]) -> Iterator[str]:
    """The refund left the house once, and at most once more for each time that somebody said it had not."""
    paid_count = sum(line["tool"] == "refund" for _, line in own)
    if paid_count != 1:
        yield f"the refund was paid {paid_count} times; doubts were settled as {told.resolutions}"


def _entries(told: Told, *kinds: str) -> Iterator[dict[str, Any]]:
    return (entry for entry in told.journal if entry["kind"] in kinds)
