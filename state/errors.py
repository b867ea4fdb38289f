"""Errors of the state package.

StateError
├── NotFound            no such thread, run, wait, step or checkpoint for this tenant
├── Conflict            the thing exists and is in the way
│   ├── ThreadExists
│   ├── ThreadBusy
│   ├── NothingToCancel
│   ├── NothingToResume
│   ├── AlreadyAnswered
│   ├── AskedByAnother
│   └── NotInDoubt
├── Refused             the request can never succeed as it stands
├── BoundReached        a limit on concurrent or open work is reached
├── KeyReused           an idempotency key was sent with a different request
├── KeyInProgress       the first request with this key has no answer yet
├── LeaseLost           another worker holds the thread now; nothing was written
├── Overtaken           a rollback was requested before the run could end; nothing was written
├── ThreadGone          the thread was deleted; nothing was written
└── JournalDamaged      stored data contradicts itself

Of the layer below, which memory has as well (`threadmark.db.errors`):

DatabaseAway            the database is unreachable or refuses work at present; nothing was written
DatabaseClosed          the database was closed; nothing was written
OutcomeUnknown          the database went away during the commit, which may or may not have succeeded
TookTooLong             a read exceeded the time limit of its request
"""

from collections.abc import Sequence

from threadmark.db.errors import DatabaseAway, DatabaseClosed, OutcomeUnknown, TookTooLong

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
    """Base of the errors of the state package; the operation that raised it changed nothing."""


class NotFound(StateError):
    """This tenant has no such thing."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"{what} with ID {name} not found")
        self.what = what
        self.name = name


class Conflict(StateError):
    """The thing exists, and its present state is in the way."""


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
    """A resume of a thread that has no open question, or one that names a question the thread never asked."""

    def __init__(self, thread_id: str, wait_id: str | None = None, open_ids: Sequence[str] = ()) -> None:
        if wait_id is None:
            why = f"Thread {thread_id} has no open question: it was already answered, or nothing was asked."
        else:
            why = f"Thread {thread_id} never asked question {wait_id}. {_open_ones(open_ids)}"
        super().__init__(why)


class AlreadyAnswered(Conflict):
    """The wait is no longer open; the first answer stands. `open_ids` are the questions that are still open."""

    def __init__(self, wait_id: str, status: str, open_ids: Sequence[str] | None = None) -> None:
        listed = "" if open_ids is None else f" {_open_ones(open_ids)}"
        super().__init__(f"Wait {wait_id} is {status}; the first answer stands.{listed}")


class AskedByAnother(Conflict):
    """A run of one assistant cannot answer for a run of another."""

    def __init__(self, wait_id: str, asking: str, answering: str) -> None:
        super().__init__(
            f"Wait {wait_id} was asked by assistant {asking!r}; a run of {answering!r} cannot answer it."
            f" Resume with assistant_id {asking!r}."
        )


class CallOutdated(Conflict):
    """The call in question no longer matches its agent; the answer was not recorded."""

    def __init__(self, wait_id: str, why: str) -> None:
        super().__init__(
            f"Wait {wait_id} cannot be approved: {why} The answer was not recorded. Answer with false or with"
            ' {"result": …}, or declare an alias for the tool. To approve a changed effect, name it:'
            ' {"approve": true, "effect": …}.'
        )


class NotInDoubt(Conflict):
    """The step to resolve is not in doubt."""

    def __init__(self, step_key: str) -> None:
        super().__init__(f"Step {step_key} is not in doubt.")


class Refused(StateError):
    """The request can never succeed as it stands; the message says what to change."""


class BoundReached(StateError):
    """A limit on concurrent, waiting or open work is reached; nothing was done.

    Attributes:
        bound: The name of the limit: that of its setting, without prefix and suffix.
        count_max: The limit.
        retry_after_s: When a retry may succeed (seconds).
    """

    def __init__(self, bound: str, count_max: int, retry_after_s: float) -> None:
        super().__init__(f"the limit {bound} is reached ({count_max} at once); try again when there are fewer")
        self.bound = bound
        self.count_max = count_max
        self.retry_after_s = retry_after_s


class KeyReused(StateError):
    """The idempotency key was used for a different request."""

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


class Overtaken(StateError):
    """The run was asked to roll back before it could end; nothing was written."""

    def __init__(self, run: int) -> None:
        super().__init__(f"run {run} was asked to roll back; its result was discarded")


class ThreadGone(LeaseLost):
    """The thread was deleted while a worker held it; nothing was written."""


class JournalDamaged(StateError):
    """A stored entry, chain or checkpoint contradicts itself."""

    def __init__(self, thread_id: str, seq: int, why: str) -> None:
        super().__init__(f"thread {thread_id} at seq {seq}: {why}")
        self.thread_id = thread_id
        self.seq = seq
        self.why = why


def _open_ones(open_ids: Sequence[str]) -> str:
    return f"Open questions: {', '.join(open_ids)}." if open_ids else "No question is open."
