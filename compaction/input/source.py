"""What a compaction works on: the messages of a thread as the journal has them, with their places.

These are values of this package. The reader of a journal makes them; nothing here knows how entries are stored.
"""

import hashlib
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

import msgspec

__all__ = ["Call", "Part", "PartKind", "Position", "Role", "SourceEntry", "Trust"]


class Role(StrEnum):
    """Who speaks in a message; the names are those of `threadmark.state.entries.message`."""

    SYSTEM = "system"
    HUMAN = "human"
    AI = "ai"
    TOOL = "tool"


class Trust(StrEnum):
    """How far a text is to be believed, from most to least."""

    OPERATOR = "operator"
    USER = "user"
    AGENT = "agent"
    TOOL = "tool"
    WEB = "web"

    @property
    def rank(self) -> int:
        """0 for the most trusted."""
        return _RANKS[self]


class PartKind(StrEnum):
    """What a part of a message is to the model."""

    TEXT = "text"
    MEDIA = "media"  #: an image, a file, a sound: described, not read
    OPAQUE = "opaque"  #: encrypted reasoning and the like: only its maker can read it


class Position(NamedTuple):
    """A message's place: the entry's `seq`, and which of the entry's messages it is."""

    seq: int
    message: int = 0


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a message. Media and opaque parts have a digest and a size instead of text.

    `block` is the JSON text of the original content block, for parts that are more than text.
    """

    kind: PartKind = PartKind.TEXT
    text: str = ""
    media_type: str = ""
    digest: str = ""
    size: int = 0  #: bytes
    block: str = ""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call in a message; `arguments` is JSON text."""

    call_id: str
    name: str
    arguments: str = "{}"


class SourceEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a thread, in its place.

    `answers` names the calls whose results the message carries. `links` are further keys that tie messages together
    (a reasoning item and what follows it, an approval and its answer). `is_open`: there is no answer yet to
    what this message asked. An erased entry has no text any more and keeps its place.
    """

    seq: int
    role: Role
    parts: tuple[Part, ...] = ()
    message: int = 0
    message_id: str = ""
    name: str | None = None
    calls: tuple[Call, ...] = ()
    answers: tuple[str, ...] = ()
    failed: bool = False  #: a tool result that reports an error
    links: tuple[str, ...] = ()
    trust: Trust | None = None
    tokens: int = 0  #: as counted for the model that reads the thread
    pinned: bool = False
    critical: bool = False
    is_open: bool = False
    erased: bool = False

    @property
    def position(self) -> Position:
        """Its place in the thread."""
        return Position(self.seq, self.message)

    @property
    def trusted(self) -> Trust:
        """Its trust; where nothing was said, that of its role."""
        return self.trust or _TRUST_OF_ROLE[self.role]

    def texts(self) -> Iterator[tuple[int, str]]:
        """The number and text of each part that can be read; arguments of calls come after the parts."""
        for number, part in enumerate(self.parts):
            if part.kind is PartKind.TEXT and part.text:
                yield number, part.text
        for number, call in enumerate(self.calls, start=len(self.parts)):
            if call.arguments not in ("", "{}"):
                yield number, call.arguments

    def text_of(self, part: int) -> str:
        """The text of a part, or of the arguments of a call."""
        return self.parts[part].text if part < len(self.parts) else self.calls[part - len(self.parts)].arguments

    def text(self) -> str:
        """All that can be read of it, one part a line."""
        return "\n".join(text for _, text in self.texts())

    def digest(self) -> str:
        """SHA-256 of what the message holds; equal for equal content, whatever its place."""
        content = (self.role, self.name, self.parts, self.calls, self.answers, self.failed)
        return hashlib.sha256(msgspec.json.encode(content)).hexdigest()


_RANKS = {trust: rank for rank, trust in enumerate(Trust)}
_TRUST_OF_ROLE = {
    Role.SYSTEM: Trust.OPERATOR,
    Role.HUMAN: Trust.USER,
    Role.AI: Trust.AGENT,
    Role.TOOL: Trust.TOOL,
}
