"""Ids in paths and bodies: UUIDs, or refused before anything is looked up."""

import re

__all__ = ["BadId", "uuid_of"]

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class BadId(ValueError):
    """This text is no id of such a thing; nothing was looked up."""

    def __init__(self, what: str) -> None:
        super().__init__(f"Invalid {what} ID: must be a UUID")
        self.path = f"{what}_id"


def uuid_of(what: str, text: str) -> str:
    """The id of a `what` (`thread`, `run`, `wait`, `checkpoint`) in its one spelling. Raises BadId."""
    if not _UUID.fullmatch(text):
        raise BadId(what)
    return text.lower()
