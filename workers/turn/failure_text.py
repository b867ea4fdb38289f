"""Failures of tools as they are kept: a sentence of a bounded size that any store can hold. Pure."""

from threadmark.state import Failure

__all__ = ["FAILURE_BYTES_MAX", "bounded_failure"]

#: Longest sentence of a failure, in UTF-8, the mark of the cut included.
FAILURE_BYTES_MAX = 4096
_CUT = "… (cut)".encode()


def bounded_failure(error: str, message: str) -> Failure:
    """The failure, its sentence cut at a code point and marked as cut where it is longer than is kept."""
    # As many code points as could be kept: a sentence of many megabytes is not encoded whole.
    head = message[: FAILURE_BYTES_MAX + 1]
    # A path that is no text has lone surrogates in it.
    raw = head.encode(errors="backslashreplace")
    if len(raw) > FAILURE_BYTES_MAX or len(head) < len(message):
        raw = raw[: FAILURE_BYTES_MAX - len(_CUT)].decode(errors="ignore").encode() + _CUT
    return Failure(error, raw.decode())
