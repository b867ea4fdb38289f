"""Golden journals: real journals in a file each, with what they folded to when they were written.

The first line is about the whole: its name, its leaves and lineage, and the picture of the state. Every further line
is an entry as it was stored.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from threadmark.state import Leave, Lineage, Position, Recorded, ThreadState, fold, read_history, visible
from threadmark.state.entries.entry import decode, encode

__all__ = ["FOLDER", "Golden", "digest_of", "picture_of", "read_golden", "write_golden"]

FOLDER = Path(__file__).parent / "journals"


@dataclass(frozen=True)
class Golden:
    """A journal, and what was seen in it when it was written."""

    name: str
    leaves: dict[int, Leave]
    lineage: Lineage
    payloads: Sequence[bytes]
    entries: Sequence[Recorded]
    digest: str


def picture_of(entries: Sequence[Recorded], leaves: dict[int, Leave], lineage: Lineage) -> dict[str, Any]:
    """What the fold has to say of a journal for ever, in words that do not change with the names of the code."""
    state = fold(visible(entries, lineage))
    history = read_history(entries, leaves)
    return {
        "messages": msgspec.to_builtins(state.messages),
        "next": state.next,
        "calls": _calls(state),
        "execution": _execution(state),
        "failure": msgspec.to_builtins(state.failure),
        "position": _position(state.position),
        "history": [_position(each) for each in history.positions.values()],
        "asked": dict(sorted(history.asked.items())),
    }


def digest_of(picture: dict[str, Any]) -> str:
    """SHA-256 of the picture's canonical JSON."""
    return hashlib.sha256(msgspec.json.encode(picture, order="sorted")).hexdigest()


def write_golden(name: str, entries: Sequence[Recorded], leaves: dict[int, Leave], lineage: Lineage) -> None:
    """Write a journal and the digest of its picture."""
    head = {
        "name": name,
        "leaves": {str(branch): [leave.parent, leave.fork_seq] for branch, leave in leaves.items()},
        "lineage": lineage,
        "digest": digest_of(picture_of(entries, leaves, lineage)),
    }
    lines = [msgspec.json.encode(head)]
    for each in entries:
        place = [each.seq, each.branch, each.run, each.fence, each.at_us, each.kind]
        lines.append(msgspec.json.encode([*place, msgspec.Raw(encode(each.entry))]))
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.jsonl").write_bytes(b"\n".join(lines) + b"\n")


def read_golden(path: Path) -> Golden:
    """Read a journal as a database would give it."""
    first, *lines = path.read_bytes().splitlines()
    head = msgspec.json.decode(first)
    rows = [msgspec.json.decode(line, type=tuple[int, int, int | None, int, int, str, msgspec.Raw]) for line in lines]
    return Golden(
        name=head["name"],
        leaves={int(branch): Leave(*leave) for branch, leave in head["leaves"].items()},
        lineage=msgspec.convert(head["lineage"], Lineage),
        payloads=[bytes(row[6]) for row in rows],
        entries=[Recorded(*row[:6], decode(row[5], bytes(row[6]))) for row in rows],
        digest=head["digest"],
    )


def _calls(state: ThreadState) -> list[dict[str, Any]]:
    return [
        {
            "key": key,
            "call": msgspec.to_builtins(call.call),
            "outcome": call.outcome,
            "intents": call.intent_count,
            "failures": call.failure_count,
            "asked": call.wait_id if call.wait_open else None,
            "approval": call.approval,
            "resolution": call.resolution,
        }
        for key, call in state.calls.items()
    ]


def _execution(state: ThreadState) -> dict[str, Any] | None:
    execution = state.execution
    if execution is None:
        return None
    return {
        "id": execution.execution_id,
        "run": execution.run_id,
        "turns": execution.turn_count,
        "model_calls": execution.model_count,
        "tokens": [execution.tokens_in, execution.tokens_out, execution.tokens_saved],
        "settled": execution.settled,
    }


def _position(position: Position | None) -> list[Any] | None:
    if position is None:
        return None
    return [position.seq, position.branch, position.source, position.step, position.next, position.run]
