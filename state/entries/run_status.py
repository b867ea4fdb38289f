"""Statuses of runs and threads, and their transitions."""

from enum import StrEnum

__all__ = ["MOVES", "SETTLED", "CancelAction", "Multitask", "ParkReason", "RunStatus", "ThreadStatus"]


class RunStatus(StrEnum):
    """The status of a run, in the SDK's words."""

    PENDING = "pending"  #: accepted, or parked until a condition holds
    RUNNING = "running"  #: a worker is taking a turn
    SUCCESS = "success"  #: ended; also when it ended to wait for a person
    ERROR = "error"  #: ended by a failure or a budget; `reason` says which
    TIMEOUT = "timeout"  #: ended by its wall-time budget
    INTERRUPTED = "interrupted"  #: ended by a cancellation


class ThreadStatus(StrEnum):
    """The status of a thread."""

    IDLE = "idle"
    BUSY = "busy"
    INTERRUPTED = "interrupted"  #: a question to a person is open
    ERROR = "error"  #: the last run failed


class ParkReason(StrEnum):
    """Why a pending run is not claimable yet."""

    IN_DOUBT = "in_doubt"  #: the outcome of a `once` step is unknown; `resolve` settles it
    BACKOFF = "backoff"  #: an attempt failed; the next one is due at `due_at`
    BROKEN = "broken"  #: its turn broke off; the next one is due at `due_at`
    QUARANTINED = "quarantined"  #: its turns broke off repeatedly; an operator can redrive it


class Multitask(StrEnum):
    """What a new run does to the unfinished runs of its thread."""

    REJECT = "reject"
    ENQUEUE = "enqueue"
    INTERRUPT = "interrupt"
    ROLLBACK = "rollback"


class CancelAction(StrEnum):
    """What a cancellation leaves behind."""

    INTERRUPT = "interrupt"  #: the progress made so far stays
    ROLLBACK = "rollback"  #: the head moves back to before the run; the run is gone


MOVES: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.PENDING: frozenset({RunStatus.RUNNING, RunStatus.INTERRUPTED}),
    RunStatus.RUNNING: frozenset(RunStatus) - {RunStatus.RUNNING},
    RunStatus.SUCCESS: frozenset(),
    RunStatus.ERROR: frozenset(),
    RunStatus.TIMEOUT: frozenset(),
    RunStatus.INTERRUPTED: frozenset(),
}
SETTLED = frozenset(status for status, targets in MOVES.items() if not targets)
if MOVES.keys() != set(RunStatus):
    raise AssertionError("every status needs transitions")
