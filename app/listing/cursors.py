"""Cursors: where a page of a listing begins, sealed for the tenant and the filter it was made for.

A cursor is base64url of its payload and a MAC. The MAC also covers who asks and what is listed, so a cursor that was
altered, or that comes from another tenant, another listing or another filter, is refused alike and says nothing about
where it came from.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

__all__ = ["CURSOR_CHARS_MAX", "BadCursor", "Cursor", "CursorSigner", "Listing"]

CURSOR_CHARS_MAX = 1_000
_MAC_BYTES = 16


class BadCursor(ValueError):
    """This cursor was not made by this server for this listing; nothing was listed."""

    def __init__(self) -> None:
        super().__init__("this cursor was not made for this listing; begin again without a cursor")


@dataclass(frozen=True, slots=True)
class Listing:
    """What is listed, for whom: a cursor is good for an equal one only.

    Attributes:
        tenant_id: Whose things are listed.
        name: The listing, e.g. `admin/keys`.
        filters: Everything that chooses or orders the rows. The page size is not part of it.
    """

    tenant_id: str
    name: str
    filters: Mapping[str, Any]


class Cursor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The place next to which a page lies.

    Attributes:
        position: The sort key of the row before (or, backward, after) the page; unique among the rows.
        backward: Whether the page ends before the position instead of beginning after it.
    """

    position: tuple[int | str, ...]
    backward: bool = False


class CursorSigner:
    """Makes and opens cursors with the server's secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def sign(self, cursor: Cursor, listing: Listing) -> str:
        """The cursor as clients carry it: base64url, at most CURSOR_CHARS_MAX characters."""
        payload = msgspec.json.encode(cursor)
        text = base64.urlsafe_b64encode(self._mac(payload, listing) + payload).decode().rstrip("=")
        if len(text) > CURSOR_CHARS_MAX:
            raise ValueError(f"a cursor of {len(text)} characters; its position is too long to carry")
        return text

    def verify(self, text: str, listing: Listing) -> Cursor:
        """The cursor inside `text`. Raises BadCursor unless it was sealed for an equal listing."""
        if len(text) > CURSOR_CHARS_MAX or not text.isascii():
            raise BadCursor
        try:
            signed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except binascii.Error as error:
            raise BadCursor from error
        mac, payload = signed[:_MAC_BYTES], signed[_MAC_BYTES:]
        # Spelled once only: base64 can carry the same bytes in several texts.
        spelled = base64.urlsafe_b64encode(signed).decode().rstrip("=")
        if spelled != text or not hmac.compare_digest(mac, self._mac(payload, listing)):
            raise BadCursor
        return msgspec.json.decode(payload, type=Cursor)

    def _mac(self, payload: bytes, listing: Listing) -> bytes:
        bound = json.dumps([listing.tenant_id, listing.name, listing.filters], sort_keys=True, separators=(",", ":"))
        message = len(bound).to_bytes(8, "big") + bound.encode() + payload
        return hmac.digest(self._secret, message, hashlib.sha256)[:_MAC_BYTES]
