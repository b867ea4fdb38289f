"""What memory refuses, and what it could not do.

RecollectionError
├── Refused                 the request breaks a rule; `path` names the field (a client's 422)
│   ├── ScopeRefused        no scope, or one that is not a list of labels
│   └── FilterRefused       an empty or unknown filter: it would have matched everything
├── UnknownAssertion        no such assertion in this tenant (404)
├── UnknownJob              no such erasure in this tenant (404)
├── UnknownQuarantine       no such quarantine in this tenant (404)
├── AlreadyRetracted        it is not held any more (409)
├── CannotUndo              later changes stand on it (409)
└── Unavailable             index, embedder or database cannot answer now; nothing was changed
    ├── IndexUnavailable
    └── EmbedderFailed
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadmark.db import Condition

__all__ = [
    "AlreadyRetracted",
    "CannotUndo",
    "EmbedderFailed",
    "FilterRefused",
    "IndexUnavailable",
    "RecollectionError",
    "Refused",
    "ScopeRefused",
    "Unavailable",
    "UnknownAssertion",
    "UnknownJob",
    "UnknownQuarantine",
]


class RecollectionError(Exception):
    """Root of what memory raises on purpose."""


class Refused(RecollectionError, ValueError):
    """The request breaks a rule; nothing was written."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path} {why}")
        self.path = path
        self.why = why


class ScopeRefused(Refused):
    """A scope is missing or malformed; it is never read as "everything"."""


class FilterRefused(Refused):
    """A filter is empty, unknown or malformed; it is never ignored."""


class UnknownAssertion(RecollectionError, LookupError):
    """No assertion of this tenant has this id."""

    def __init__(self, assertion_id: str) -> None:
        super().__init__(f"no assertion {assertion_id!r}")
        self.assertion_id = assertion_id


class UnknownJob(RecollectionError, LookupError):
    """No erasure of this tenant has this id."""

    def __init__(self, erasure_id: str) -> None:
        super().__init__(f"no erasure {erasure_id!r}")
        self.erasure_id = erasure_id


class UnknownQuarantine(RecollectionError, LookupError):
    """No quarantine of this tenant has this id."""

    def __init__(self, quarantine_id: str) -> None:
        super().__init__(f"no quarantine {quarantine_id!r}")
        self.quarantine_id = quarantine_id


class AlreadyRetracted(RecollectionError):
    """The assertion is not held any more; nothing was written."""

    def __init__(self, assertion_id: str) -> None:
        super().__init__(f"assertion {assertion_id!r} is not held any more")
        self.assertion_id = assertion_id


class CannotUndo(RecollectionError):
    """There is nothing to undo, or a later change stands on it; nothing was written."""

    def __init__(self, assertion_id: str, why: str) -> None:
        super().__init__(f"assertion {assertion_id!r} cannot be undone: {why}")
        self.assertion_id = assertion_id
        self.why = why


class Unavailable(RecollectionError):
    """A part that memory leans on cannot answer now; the request can be repeated.

    `condition` says what is the matter with its database; None where it is another part, or not known.
    """

    def __init__(self, why: str, condition: "Condition | None" = None) -> None:
        super().__init__(why)
        self.condition = condition


class IndexUnavailable(Unavailable):
    """The index cannot answer; the database still holds everything."""


class EmbedderFailed(Unavailable):
    """The embedder raised, or returned vectors that must not be stored (zero, not finite, wrong length)."""
