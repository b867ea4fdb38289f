"""How long one thread of a process computes while another waits for its turn."""

import sys

__all__ = ["TURN_S", "shorten_turns"]

#: A fifth of Python's own: the event loop waits for one turn of every thread that computes.
TURN_S = 0.001


def shorten_turns() -> None:
    """Let the event loop have its turn sooner while threads compact, rank or count. See docs/decisions/0009."""
    sys.setswitchinterval(TURN_S)
