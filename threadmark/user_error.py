"""The base of errors that a person can mend: the command prints their sentence; every other error is a defect."""

__all__ = ["UserError"]


class UserError(Exception):
    """Something outside the code is wrong; the sentence says what, and what to do about it."""
