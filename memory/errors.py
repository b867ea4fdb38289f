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
├── AnsweredBefore          a change with the same receipt was made before; carries its answer (that answer)
├── ReceiptReused           the receipt's key belongs to another request (422)
├── ReceiptInProgress       the first change with this receipt is not committed yet (409, later)
├── BoundReached            the tenant has as many of these open as it may (429)
├── ImportUnderWay          another import of this tenant is not done yet (409)
└── Unavailable             index, embedder or database cannot answer now; nothing was changed
    ├── ImportGivenUp       it stood still for so long that it was removed
    ├── IndexUnavailable
    └── EmbedderFailed
        └── EmbedderMissing its packages are not installed: a start that asks for it ends with this sentence
"""

from typing import TYPE_CHECKING

from threadmark.user_error import UserError

if TYPE_CHECKING:
    from threadmark.db import Condition

__all__ = [
    "AlreadyRetracted",
    "AnsweredBefore",
    "BoundReached",
    "CannotUndo",
    "EmbedderFailed",
    "EmbedderMissing",
    "FilterRefused",
    "ImportGivenUp",
    "ImportUnderWay",
    "IndexUnavailable",
    "ReceiptInProgress",
    "ReceiptReused",
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


class AnsweredBefore(RecollectionError):
    """A change with the same receipt was made before, and this was its answer; nothing was written."""

    def __init__(self, answer: bytes) -> None:
        super().__init__("the change was made before")
        self.answer = answer


class ReceiptReused(RecollectionError):
    """The key was used for a different request; nothing was written."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the idempotency key {key!r} was used for a different request")
        self.key = key


class ReceiptInProgress(RecollectionError):
    """Another process is making the change with this key; nothing was written. Ask again later."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the first change with the idempotency key {key!r} is still in progress")
        self.key = key


class BoundReached(RecollectionError):
    """The tenant has reached a limit on open work; nothing was changed. `bound` is its name, from its setting."""

    def __init__(self, bound: str, count_max: int, retry_after_s: float) -> None:
        super().__init__(f"the limit {bound} is reached ({count_max} at once); try again when there are fewer")
        self.bound = bound
        self.count_max = count_max
        self.retry_after_s = retry_after_s


class ImportUnderWay(RecollectionError):
    """Another import of this tenant is not done yet; nothing was written."""

    def __init__(self) -> None:
        super().__init__("another import is under way; one at a time is taken")


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


class EmbedderMissing(EmbedderFailed, UserError):
    """The packages of the embedder are not installed; the sentence names the extra."""


class ImportGivenUp(Unavailable):
    """The import stood still for so long that another process removed it; it can be sent again."""

    def __init__(self) -> None:
        super().__init__("the import stood still for too long and was removed; send it again")
