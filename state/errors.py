"""Refusals of the state package.

StateError
├── NotFound            no such thread, run, wait, step or checkpoint for this tenant
├── Conflict            the thing is there and in the way
│   ├── ThreadExists
│   ├── ThreadBusy
│   ├── NothingToCancel
│   ├── NothingToResume
│   ├── AlreadyAnswered
│   ├── AskedByAnother
│   └── NotInDoubt
├── Refused             the request can never be honoured as it stands
├── BoundReached        as much of something is going on as may at once
├── KeyReused           an idempotency key came back with another request
├── KeyInProgress       the first request with this key has no answer yet
├── LeaseLost           another worker holds the thread now; nothing was written
├── Overtaken           a rollback was asked for before the run could end; nothing was written
├── DatabaseAway        the database could not be reached, or cannot do it now: nothing was written
├── OutcomeUnknown      the database went away during the commit: it may have been done or not
├── ThreadGone          the thread was deleted; nothing was written
├── TookTooLong         a read waited and worked for longer than a request may
└── JournalDamaged      what is stored contradicts itself
"""

from collections.abc import Sequence

from threadmark.db import Condition

__all__ = [
    "AlreadyAnswered",
    "AskedByAnother",
    "BoundReached",
    "Conflict",
    "DatabaseAway",
    "DatabaseClosed",
    "JournalDamaged",
    "KeyInProgress",
    "KeyReused",
    "LeaseLost",
    "NotFound",
    "NotInDoubt",
    "NothingToCancel",
    "NothingToResume",
    "OutcomeUnknown",
    "Overtaken",
    "Refused",
    "StateError",
    "ThreadBusy",
    "ThreadExists",
    "ThreadGone",
    "TookTooLong",
]


class StateError(Exception):
    """Any refusal of the state package; whatever it refused is unchanged."""


class NotFound(StateError):
    """No such thing for this tenant."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"{what} with ID {name} not found")
        self.what = what
        self.name = name


class Conflict(StateError):
    """The thing is there, and its present state is in the way."""


class ThreadExists(Conflict):
    """The thread id is taken."""

    def __init__(self, thread_id: str) -> None:
        super().__init__(f"Thread with ID {thread_id} already exists")


class ThreadBusy(Conflict):
    """A run of the thread has not ended."""

    def __init__(self, thread_id: str) -> None:
        super().__init__(
            "Thread is already running a task. Wait for it to finish or choose a different multitask strategy."
        )
        self.thread_id = thread_id


class NothingToCancel(StateError):
    """No unfinished run matched."""

    def __init__(self) -> None:
        super().__init__("No matching runs to cancel: check the ids, and that the runs have not ended already.")


class NothingToResume(Conflict):
    """A resume came to a thread that asks nothing, or names a question that the thread never asked."""

    def __init__(self, thread_id: str, wait_id: str | None = None, open_ids: Sequence[str] = ()) -> None:
        if wait_id is None:
            why = f"Thread {thread_id} has no open question: it was answered already, or nothing was asked."
        else:
            why = f"Thread {thread_id} has not asked {wait_id}. {_open_ones(open_ids)}"
        super().__init__(why)


class AlreadyAnswered(Conflict):
    """The wait is not open any more; the first answer stands. `open_ids` are the questions that still are."""

    def __init__(self, wait_id: str, status: str, open_ids: Sequence[str] | None = None) -> None:
        listed = "" if open_ids is None else f" {_open_ones(open_ids)}"
        super().__init__(f"Wait {wait_id} is {status}; the first answer stands.{listed}")


class AskedByAnother(Conflict):
    """A run of one assistant cannot answer for a run of another."""

    def __init__(self, wait_id: str, asking: str, answering: str) -> None:
        super().__init__(
            f"Wait {wait_id} was asked by assistant {asking!r}, and {answering!r} cannot go on from it:"
            f" resume with assistant_id {asking!r}."
        )


class CallOutdated(Conflict):
    """The call that is asked about does not fit its agent any more; nothing was answered."""

    def __init__(self, wait_id: str, why: str) -> None:
        super().__init__(
            f"Wait {wait_id} cannot be approved: {why} Nothing was answered. Answer with false or with"
            ' {"result": …}, or have the tool declare an alias; a changed effect is approved by naming it:'
            ' {"approve": true, "effect": …}.'
        )


class NotInDoubt(Conflict):
    """The step to resolve has a known outcome."""

    def __init__(self, step_key: str) -> None:
        super().__init__(f"Step {step_key} is not in doubt.")


class Refused(StateError):
    """The request can never be honoured as it stands; the sentence says what to change."""


class BoundReached(StateError):
    """As much of something is going on, waits or is open as may at once; nothing was done.

    Attributes:
        bound: The name of the bound: that of the setting, without its prefix and suffix.
        count_max: How much may be.
        retry_after_s: When it is worth asking again.
    """

    def __init__(self, bound: str, count_max: int, retry_after_s: float) -> None:
        super().__init__(f"the bound {bound} is reached: {count_max} at once; try again when there are fewer")
        self.bound = bound
        self.count_max = count_max
        self.retry_after_s = retry_after_s


class KeyReused(StateError):
    """The idempotency key belongs to another request."""

    def __init__(self, key: str) -> None:
        super().__init__(f"Idempotency-Key {key!r} was used for a different request.")


class KeyInProgress(StateError):
    """The first request with this key has no answer yet."""

    def __init__(self, key: str) -> None:
        super().__init__(f"The first request with Idempotency-Key {key!r} is still in progress.")


class LeaseLost(StateError):
    """Another worker holds this thread now; nothing was written."""

    def __init__(self, thread_id: str, fence: int) -> None:
        super().__init__(f"thread {thread_id} has moved past fence {fence}")
        self.thread_id = thread_id
        self.fence = fence


class DatabaseAway(StateError):
    """The database could not be reached, or cannot do it now; nothing was written, so it can be asked again later.

    `condition` says what is the matter; the driver's error is the cause.
    """

    def __init__(self, condition: Condition = Condition.AWAY) -> None:
        super().__init__(f"the state database {condition.sentence}")
        self.condition = condition


class DatabaseClosed(RuntimeError):
    """The database was closed; nothing was written."""


class OutcomeUnknown(StateError):
    """The database went away during a commit; it was done or it was not, and asking again tells."""

    def __init__(self) -> None:
        super().__init__("the database went away during the commit; asking again tells whether it was done")


class Overtaken(StateError):
    """The run was asked to roll back before it could end; nothing was written."""

    def __init__(self, run: int) -> None:
        super().__init__(f"run {run} has to roll back instead")


class ThreadGone(LeaseLost):
    """The thread was deleted while a worker held it; nothing was written."""


class TookTooLong(StateError):
    """The answer was not there within the limit of its kind."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"the answer was not there after {limit_s:g} s: ask for less at once, or try again")


class JournalDamaged(StateError):
    """A stored entry, chain or checkpoint contradicts itself."""

    def __init__(self, thread_id: str, seq: int, why: str) -> None:
        super().__init__(f"thread {thread_id} at seq {seq}: {why}")
        self.thread_id = thread_id
        self.seq = seq
        self.why = why


def _open_ones(open_ids: Sequence[str]) -> str:
    return f"Open questions: {', '.join(open_ids)}." if open_ids else "No question is open."
