"""What a database could not do for its callers. `database` names which one: state or memory."""

from threadmark.db.conditions import Condition

__all__ = ["DatabaseAway", "DatabaseClosed", "OutcomeUnknown", "TookTooLong"]


class DatabaseAway(Exception):
    """The database is unreachable or refuses work at present. Nothing was written, so the caller can retry later.

    `condition` says why; the cause is the driver's error.
    """

    def __init__(self, condition: Condition = Condition.AWAY, *, database: str = "state") -> None:
        super().__init__(f"the {database} database {condition.sentence}")
        self.condition = condition


class DatabaseClosed(RuntimeError):
    """The database was closed; nothing was written."""


class OutcomeUnknown(Exception):
    """The database went away during a commit, which may or may not have succeeded; reading again shows which."""

    def __init__(self) -> None:
        super().__init__("the database went away during the commit; ask again to see whether it succeeded")


class TookTooLong(Exception):
    """The request exceeded the time limit of its kind."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"the request took longer than {limit_s:g} s; ask for less at once, or try again")
