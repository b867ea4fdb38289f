"""The integers that are kept: those that both databases, and every JSON client, give back exactly."""

__all__ = ["INT_MAX", "INT_MIN", "INT_RANGE", "keeps_int"]

#: Clients that read JSON numbers as 64-bit floats round whatever lies beyond.
INT_MIN, INT_MAX = -(2**53 - 1), 2**53 - 1
#: The range, for error messages.
INT_RANGE = "-(2^53-1) to 2^53-1"


def keeps_int(value: int) -> bool:
    """Whether the integer comes back as it was from every store and every client."""
    return INT_MIN <= value <= INT_MAX
