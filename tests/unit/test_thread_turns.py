"""Turns of threads: the event loop does not wait for Python's own five milliseconds."""

import sys

from threadmark.workers.fleet.interpreter import TURN_S, shorten_turns


def test_a_thread_that_computes_gives_way_sooner() -> None:
    """The interpreter's interval belongs to the process, so the server sets it."""
    before = sys.getswitchinterval()
    try:
        shorten_turns()
        assert sys.getswitchinterval() == TURN_S < before
    finally:
        sys.setswitchinterval(before)
