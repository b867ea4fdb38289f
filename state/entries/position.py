"""Checkpoint ids: a UUID that names a position of one thread's journal, without a table of its own.

Layout (RFC 9562 version 8): 48 bits Unix milliseconds of the entry | version | 12 + 20 bits of its `seq` | variant |
42 bits of SHA-256(thread id, branch, seq). Ordered by time, then by seq; the hash exposes invented ids.
"""

import hashlib
import uuid

__all__ = ["SEQ_MAX", "checkpoint_id_of", "seq_of_checkpoint"]

SEQ_MAX = 2**32 - 1
_HASH_BITS = 42


def checkpoint_id_of(thread_id: str, branch: int, seq: int, at_us: int) -> str:
    """The id of the position after the entry at `seq` on `branch`, recorded at `at_us` (epoch microseconds)."""
    seal = hashlib.sha256(f"{thread_id}/{branch}/{seq}".encode()).digest()
    value = (at_us // 1000 & (1 << 48) - 1) << 80
    value |= 0x8 << 76 | (seq >> 20 & 0xFFF) << 64
    value |= 0x2 << 62 | (seq & 0xFFFFF) << _HASH_BITS | int.from_bytes(seal[:8], "big") >> (64 - _HASH_BITS)
    return str(uuid.UUID(int=value))


def seq_of_checkpoint(checkpoint_id: str) -> int | None:
    """The seq in a checkpoint id, or None if it is not one. Then compare the whole id with the id of the entry."""
    try:
        value = uuid.UUID(checkpoint_id)
    except ValueError:
        return None
    if value.version != 8:  # noqa: PLR2004 - RFC 9562
        return None
    return (value.int >> 64 & 0xFFF) << 20 | value.int >> _HASH_BITS & 0xFFFFF
