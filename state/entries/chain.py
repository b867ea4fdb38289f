"""The hash chain of a thread: what `threadmark verify` recomputes.

    payload_digest = SHA-256(salt || payload)
    digest         = SHA-256(previous digest || thread || seq, branch, run, fence, at_us || kind || payload_digest)

The chain covers the salted digest and not the payload. An erased payload leaves its digest and loses its salt, so the
chain still verifies, and a short text cannot be guessed from what remains.
"""

import hashlib
import struct

__all__ = ["GENESIS", "SALT_BYTES", "link", "payload_digest"]

SALT_BYTES = 16
GENESIS = bytes(32)
_HEADER = struct.Struct(">QIqQq")


def payload_digest(salt: bytes, payload: bytes) -> bytes:
    """The salted digest (32 bytes) that represents a payload in the chain."""
    return hashlib.sha256(salt + payload).digest()


def link(
    previous: bytes,
    *,
    thread_id: str,
    seq: int,
    branch: int,
    run: int | None,
    fence: int,
    at_us: int,
    kind: str,
    payload: bytes,
) -> bytes:
    """The digest (32 bytes) of the entry at `seq`, chained to `previous`; `payload` is a payload digest."""
    header = _HEADER.pack(seq, branch, -1 if run is None else run, fence, at_us)
    return hashlib.sha256(b"%b%b%b%b\0%b" % (previous, thread_id.encode(), header, kind.encode(), payload)).digest()
