"""Ids in paths, bodies and headers, or refused before anything is looked up."""

import re

__all__ = ["BadEventId", "BadId", "uuid_of"]

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class BadId(ValueError):
    """This text is no id of such a thing; nothing was looked up."""

    def __init__(self, what: str) -> None:
        super().__init__(f"Invalid {what} ID: must be a UUID")
        self.path = f"{what}_id"


class BadEventId(ValueError):
    """This text is no id of an event of the run; nothing was streamed."""

    def __init__(self) -> None:
        super().__init__("Last-Event-ID names no event of this run; send the id of an event, or 0 for all of them")


def uuid_of(what: str, text: str) -> str:
    """The id of a `what` (`thread`, `run`, `wait`, `checkpoint`) in its one spelling. Raises BadId."""
    if not _UUID.fullmatch(text):
        raise BadId(what)
    return text.lower()
