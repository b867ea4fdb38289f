"""Errors of compaction. What a caller must handle is a value (`Refusal`, `Aborted`); these are broken rules.

CompactionError
├── ViewBroken          a view names what is not there, or names it twice
└── PlanOutdated        the view has moved since the plan was made
"""

__all__ = ["CompactionError", "PlanOutdated", "ViewBroken"]


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
