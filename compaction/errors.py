"""Errors of compaction. What a caller must handle is a value (`Refusal`, `Aborted`); these are broken rules.

CompactionError
├── ViewBroken          a view names what is not there, or names it twice
├── PlanOutdated        the view has moved since the plan was made
├── ViewMoved           another caller moved the view, or changed what it covers; nothing was written
├── RunInProgress       a run holds the thread; nothing was written
├── HoldLost            another process performs the compaction now; nothing was written
├── BudgetSpent          the money that several compactions share does not suffice; the call was not made
├── PolicyMoved         a named policy is not what the caller took it for; nothing was written
└── NothingToUndo       the view is not one that a restore made
"""

__all__ = [
    "BudgetSpent",
    "CompactionError",
    "HoldLost",
    "NothingToUndo",
    "PlanOutdated",
    "PolicyMoved",
    "RunInProgress",
    "ViewBroken",
    "ViewMoved",
]


class CompactionError(Exception):
    """The root of this package's errors."""


class ViewBroken(CompactionError):
    """The view cannot be rendered: it names an entry or a segment that is not there, or an entry twice."""

    def __init__(self, view_id: str, what: str) -> None:
        super().__init__(f"view {view_id!r}: {what}")
        self.view_id = view_id


class PlanOutdated(CompactionError):
    """The covered entries are no longer those that were planned; nothing was changed."""

    def __init__(self, view_id: str, what: str) -> None:
        super().__init__(f"the plan over view {view_id!r} is outdated: {what}")
        self.view_id = view_id


class ViewMoved(CompactionError):
    """The thread has another view, or another history, than the one that was read; nothing was written."""

    def __init__(self, thread_id: str, view_id: str) -> None:
        super().__init__(f"thread {thread_id!r} has moved on from view {view_id!r}")
        self.thread_id, self.view_id = thread_id, view_id


class RunInProgress(CompactionError):
    """A run holds the thread, and its view is left alone until the run lets go; nothing was written."""

    def __init__(self, thread_id: str) -> None:
        super().__init__(f"a run holds thread {thread_id!r}")
        self.thread_id = thread_id


class HoldLost(CompactionError):
    """Another process performs this compaction now; nothing was written."""

    def __init__(self, compaction_id: str, holder: str) -> None:
        super().__init__(f"{holder!r} does not perform compaction {compaction_id!r} any more")
        self.compaction_id = compaction_id


class BudgetSpent(CompactionError):
    """What a call may cost at most is not there any more; it was not made."""

    def __init__(self, purse_id: str) -> None:
        super().__init__(f"the money of {purse_id!r} does not suffice for the next call")
        self.purse_id = purse_id


class PolicyMoved(CompactionError):
    """The name has another version, has none, or has one already."""

    def __init__(self, name: str, version: int | None) -> None:
        there = "does not exist" if version is None else f"has version {version} now"
        super().__init__(f"compaction policy {name!r} {there}: the condition does not hold")
        self.name, self.version = name, version


class NothingToUndo(CompactionError):
    """Only a restore can be undone, and only while the view still stands at it."""

    def __init__(self, view_id: str, what: str) -> None:
        super().__init__(f"view {view_id!r} cannot be undone: {what}")
        self.view_id = view_id
