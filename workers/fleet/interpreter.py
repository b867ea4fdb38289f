"""How the interpreter is set up for a process that serves: its garbage collector, and turns of its threads."""

import gc
import sys

__all__ = ["TURN_S", "settle_heap", "shorten_turns"]

#: Seconds, a fifth of Python's own: the event loop waits for one turn of every thread that computes.
TURN_S = 0.001


def settle_heap() -> None:
    """Keep modules, classes and routes out of the garbage collector's sight, from now on.

    Each of its full passes would look at all of them and find nothing: in a ledger of ten thousand rows that was a
    quarter of the time, and the event loop stands still meanwhile. Call it once, when everything is imported.
    """
    gc.collect()
    gc.freeze()


def shorten_turns() -> None:
    """Let the event loop have its turn sooner while threads compact, rank or count. See docs/decisions/0009."""
    sys.setswitchinterval(TURN_S)
