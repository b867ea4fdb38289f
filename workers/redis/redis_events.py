"""What live events look like in Redis: an entry of a run's stream, and a wake-up that something stirs in a run.

Pure. What comes from Redis is decoded strictly: a client that can write there can write anything.
"""

import re
from typing import Any, Literal

import msgspec

from threadmark.workers.feeds.feed import Flash

__all__ = ["RunNotice", "decode_flash", "decode_notices", "encode_flash", "encode_notices", "place_of"]

_PLACE = re.compile(rb"(\d{1,18})-(\d{1,18})")


class RunNotice(msgspec.Struct, array_like=True):
    """A run has flashed, or its journal is durable up to `seq` (0: no news of it), or its turn is over."""

    tenant_id: str
    run_id: str
    flashed: bool = False
    seq: int = 0
    ended: bool = False


class _Body(msgspec.Struct):
    """A flash without its place, which is the id of the stream's entry."""

    kind: Literal["delta", "custom"]
    data: Any
    message_id: str | None = None


_BODY = msgspec.json.Decoder(_Body)
_NOTICES = msgspec.json.Decoder(list[RunNotice])


def encode_flash(flash: Flash) -> bytes:
    """The flash as JSON, without its place."""
    return msgspec.json.encode(_Body(flash.kind, flash.data, flash.message_id))


def decode_flash(place: tuple[int, int], body: bytes) -> Flash | None:
    """The flash at this place; None for what is none."""
    try:
        read = _BODY.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return Flash(after_seq=place[0], ordinal=place[1], kind=read.kind, data=read.data, message_id=read.message_id)


def place_of(entry_id: bytes) -> tuple[int, int]:
    """(after_seq, ordinal) of a stream's entry; (0, 0), where no flash is, for anything else."""
    found = _PLACE.fullmatch(entry_id)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def encode_notices(notices: list[RunNotice]) -> bytes:
    """One message for all that stirred together."""
    return msgspec.json.encode(notices)


def decode_notices(message: bytes) -> list[RunNotice]:
    """What stirs. Raises msgspec.MsgspecError for what is no such message."""
    return _NOTICES.decode(message)
