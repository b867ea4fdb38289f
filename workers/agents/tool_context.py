"""What a tool is handed beside its arguments.

Access to memory and to drops of compactions is given by protocols: a turn implements them, and nothing that is
imported here knows how. An agent's definition needs no database, and a test of a tool hands in objects of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from threadmark.compaction import DropQuery, Expanded, FoundDrop
    from threadmark.memory import Answers, Assertion, Include, Verdict
    from threadmark.workers.agents.moments import Moment

    JSON: TypeAlias = "Mapping[str, JSON] | Sequence[JSON] | str | int | float | bool | None"
else:
    JSON = Any  # a tool's own module could not resolve the names inside the recursive type

__all__ = ["JSON", "DroppedAccess", "MemoryAccess", "ToolContext"]


class MemoryAccess(Protocol):
    """What the tools of an agent may do with memory, in the one scope that its policy gives them.

    Every call raises NoScope where the thread has no memory of its own, and RecollectionError.
    """

    async def remember(
        self, text: str, subject: str | None, attribute: str | None, value: str | float | bool | None
    ) -> "tuple[Verdict, Moment]":
        """Keep a statement; what became of it, and where it comes from."""

    async def recall(
        self, question: str, limit: int, include: "Include", valid_at: datetime | None, known_at: datetime | None
    ) -> "Answers":
        """Ask."""

    async def timeline(self, subject: str, attribute: str) -> "Sequence[Assertion]":
        """Every version of an attribute, the oldest first."""

    async def why(self, memory_id: str) -> "tuple[Assertion, Sequence[Assertion]]":
        """A memory with its sources, and its versions."""


class DroppedAccess(Protocol):
    """What compactions took out of the view of the one thread that the run is of."""

    async def search(self, query: "DropQuery", key: str) -> "Sequence[FoundDrop]":
        """The best answers among what the thread's view does not show, noted once for each `key`."""

    async def expand(self, summary_id: str, budget_tokens: int, from_seq: int) -> "Expanded":
        """The entries of a summary of the thread. Raises NotFound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The call that a tool performs, as the tool sees it."""

    thread_id: str
    run_id: str
    step_key: str
    idempotency_key: str  #: equal in every attempt of this step, different in every other step
    attempt: int  #: from 1
    data_dir: Path
    emit: Callable[[JSON], None]  #: sends an event to clients that stream `custom`
    now: Callable[[], datetime]  #: aware, UTC
    dropped: DroppedAccess | None = None  #: what compactions took out of the thread's view
    memory: MemoryAccess | None = None  #: what the agent's policy lets its tools do with memory
