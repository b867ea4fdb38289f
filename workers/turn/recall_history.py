"""What a run knew from memory, and why: read from its journal alone, independent of later changes of memory. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threadmark.state import (
    ExecutionId,
    Failure,
    ModelReplied,
    Recalled,
    Recorded,
    ThreadState,
    ToolReturned,
    apply,
    plain,
)

__all__ = ["RecallRecord", "recalls_of"]

#: Tools of memory that tell something, and where in their results the answers are.
_ANSWERS_OF = {"recall": "answers", "timeline": "versions", "why": "memory"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRecord:
    """One answer of memory: to the run itself (`tool` is None), or to a tool that its model called."""

    seq: int
    at_us: int
    step_key: str
    tool: str | None
    message_id: str | None
    question: Mapping[str, Any]
    status: str
    answers: Sequence[Mapping[str, Any]]
    withheld: Mapping[str, int]
    recipe: str | None
    failure: Failure | None
    duration_us: int


def recalls_of(recorded: Iterable[Recorded], execution_id: ExecutionId) -> list[RecallRecord]:
    """The recalls of the execution, in order; `recorded` are the entries of one lineage.

    An answer of an earlier execution is among them where a model call of this one was still shown it.
    """
    state, recalls, last = ThreadState(), list[RecallRecord](), None
    for each in recorded:
        arguments = {key: call.call.arguments for key, call in state.calls.items()}
        is_shown = state.recalled_now is not None
        apply(state, each)
        is_own = state.execution is not None and state.execution.execution_id == execution_id
        match each.entry:
            case Recalled() as entry:
                last = _to_run(each, entry)
                recalls += [last] if is_own else []
            case ModelReplied() if is_own and is_shown and last is not None and last not in recalls:
                recalls.append(last)
            case ToolReturned(tool=tool) as entry if is_own and tool in _ANSWERS_OF:
                recalls.append(_to_tool(each, entry, arguments.get(entry.step_key, {})))
            case _:
                pass
    return recalls


def _to_run(at: Recorded, entry: Recalled) -> RecallRecord:
    return RecallRecord(
        seq=at.seq,
        at_us=at.at_us,
        step_key=entry.step_key,
        tool=None,
        message_id=entry.message_id,
        question=entry.question,
        status=entry.status,
        answers=entry.answers,
        withheld=entry.withheld,
        recipe=entry.recipe,
        failure=entry.failure,
        duration_us=entry.duration_us,
    )


def _to_tool(at: Recorded, entry: ToolReturned, question: Mapping[str, Any]) -> RecallRecord:
    value = plain(entry.value) if isinstance(entry.value, dict) else {}
    found = value.get(_ANSWERS_OF[entry.tool], [])
    return RecallRecord(
        seq=at.seq,
        at_us=at.at_us,
        step_key=entry.step_key,
        tool=entry.tool,
        message_id=entry.message_id,
        question=question,
        status="ok" if entry.outcome == "ok" else "unavailable",
        answers=found if isinstance(found, list) else [found],
        withheld=value.get("withheld", {}),
        recipe=None,
        failure=entry.failure,
        duration_us=entry.duration_us,
    )
