"""Journals of runs for tests of their streams: entries in their places, and the flashes between them."""

from typing import Any

from threadmark.state import (
    Entry,
    ExecutionId,
    Failure,
    Message,
    ModelReplied,
    Recorded,
    RunId,
    RunSettled,
    RunStarted,
    StepKey,
    ToolCall,
    ToolReturned,
    TurnStarted,
    Usage,
    WaitOpened,
    kind_of,
)
from threadmark.workers.feeds.feed import Flash

__all__ = ["RUN", "Story", "flashes_before"]

#: The number of the streamed run.
RUN = 7
EXECUTION = ExecutionId("01a22741-0000-7000-8000-00000000000e")
RUN_ID = RunId("01a22741-0000-7000-8000-000000000001")


class Story:
    """A journal that grows entry by entry, all of one run."""

    def __init__(self) -> None:
        self.entries: list[Recorded] = []

    def note(self, entry: Entry) -> "Story":
        """Append an entry."""
        seq = len(self.entries) + 1
        self.entries.append(Recorded(seq, 0, RUN, 1, 1_000_000 * seq, kind_of(entry), entry))
        return self

    def start(self, text: str = "hi") -> "Story":
        """The run, and its first turn, begin."""
        human = Message(id="human-1", type="human", content=text)
        self.note(
            RunStarted(run_id=RUN_ID, execution_id=EXECUTION, assistant="chat", source="input", messages=(human,))
        )
        return self.turn(1)

    def resume(self) -> "Story":
        """A run goes on with the same execution, because an answer came."""
        self.note(RunStarted(run_id=RUN_ID, execution_id=EXECUTION, assistant="chat", source="resume"))
        return self.turn(1)

    def turn(self, attempt: int) -> "Story":
        """A worker begins a turn."""
        return self.note(TurnStarted(worker_id="w", attempt=attempt))

    def reply(self, *pieces: str, calls: tuple[str, ...] = (), emitted: tuple[Any, ...] = ()) -> "Story":
        """The model replies in these pieces, and calls these tools."""
        ordinal = 1 + sum(isinstance(each.entry, ModelReplied) for each in self.entries)
        message = Message(
            id=f"reply-{ordinal}",
            type="ai",
            content="".join(pieces),
            tool_calls=tuple(
                ToolCall(f"call-{ordinal}-{index}", name, {"index": index}) for index, name in enumerate(calls)
            ),
            usage=Usage(3, 4),
        )
        return self.note(
            ModelReplied(
                step_key=StepKey(f"model-{ordinal}"),
                message=message,
                model="offline",
                usage=Usage(3, 4),
                cuts=tuple(len(piece) for piece in pieces),
                emitted=emitted,
            )
        )

    def result(self, ordinal: int, index: int, value: Any = "done", *, emitted: tuple[Any, ...] = ()) -> "Story":
        """A tool returns."""
        return self.note(
            ToolReturned(
                step_key=StepKey(f"tool-{ordinal}-{index}"),
                call_id=f"call-{ordinal}-{index}",
                tool="tool",
                outcome="ok",
                message_id=f"result-{ordinal}-{index}",
                value=value,
                emitted=emitted,
            )
        )

    def ask(self, ordinal: int, index: int, kind: Any = "approval") -> "Story":
        """A person is asked about a call."""
        return self.note(
            WaitOpened(
                wait_id=f"01a22741-0000-7000-8000-0000000000{ordinal}{index}",
                step_key=StepKey(f"tool-{ordinal}-{index}"),
                kind=kind,
                tool="pay",
                arguments={"index": index},
                shown_digest="0" * 64,
            )
        )

    def settle(self, status: str = "success", *, failure: Failure | None = None, **more: Any) -> "Story":
        """The run ends."""
        return self.note(RunSettled(run_id=RUN_ID, status=status, failure=failure, **more))


def flashes_before(at: Recorded) -> list[Flash]:
    """What readers saw live in the gap that the entry ended."""
    shown: list[tuple[Any, str | None]] = []
    if isinstance(at.entry, ModelReplied):
        text, begin = str(at.entry.message.content), 0
        for length in at.entry.cuts:
            shown.append((text[begin : begin + length], at.entry.message.id))
            begin += length
    shown += [(data, None) for data in at.entry.emitted]
    return [
        Flash(
            after_seq=at.seq - 1,
            ordinal=ordinal,
            kind="custom" if message_id is None else "delta",
            data=data,
            message_id=message_id,
        )
        for ordinal, (data, message_id) in enumerate(shown, start=1)
    ]
