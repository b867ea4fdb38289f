"""A gate before a writer: what is written meanwhile comes to it in one batch."""

import threading

from sqlalchemy import Connection

__all__ = ["Gate"]


class Gate:
    """A unit that keeps its writer busy until the gate is opened."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()

    def __call__(self, _connection: Connection) -> None:
        self.entered.set()
        assert self.opened.wait(10), "nobody opened the gate"
