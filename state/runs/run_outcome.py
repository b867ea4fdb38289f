"""How a turn leaves its run: one value from what the agent decided to the rows of run and thread."""

from dataclasses import dataclass

import msgspec

from threadmark.state.entries.entry import Failure
from threadmark.state.entries.run_status import SETTLED, ParkReason, RunStatus, ThreadStatus

__all__ = ["RunOutcome"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """Settled with a status, or pending: released, or parked until `due_at_us` or until somebody settles a doubt.

    Attributes:
        thread_status: What the thread is afterwards, unless another run of it is pending.
        hidden: Whether the run is no longer shown, as after a rollback.
    """

    status: RunStatus
    thread_status: ThreadStatus = ThreadStatus.IDLE
    reason: str | None = None
    failure: Failure | None = None
    parked: ParkReason | None = None
    due_at_us: int = 0
    hidden: bool = False

    @classmethod
    def of_release(cls) -> "RunOutcome":
        """Pending, and due at once."""
        return cls(status=RunStatus.PENDING, thread_status=ThreadStatus.BUSY)

    @classmethod
    def of_park(cls, reason: ParkReason, due_at_us: int = 0) -> "RunOutcome":
        """Pending for this reason; only a doubt is a question to a person."""
        asks = reason is ParkReason.IN_DOUBT
        thread_status = ThreadStatus.INTERRUPTED if asks else ThreadStatus.BUSY
        return cls(status=RunStatus.PENDING, thread_status=thread_status, parked=reason, due_at_us=due_at_us)

    @property
    def is_settled(self) -> bool:
        """Whether the run is over."""
        return self.status in SETTLED

    @property
    def error(self) -> str | None:
        """The failure as the run's row keeps it: JSON."""
        return None if self.failure is None else msgspec.json.encode(self.failure).decode()

    @property
    def thread_error(self) -> str | None:
        """The failure as the thread's row keeps it, which shows that of a thread in error alone."""
        return self.error if self.thread_status is ThreadStatus.ERROR else None
