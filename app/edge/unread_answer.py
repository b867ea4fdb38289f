"""Unread answers: a client that does not read its answer holds the resources of the answer, for a while."""

import array
import asyncio
import fcntl
import logging
import termios

__all__ = ["UnreadAnswer"]

_LOG = logging.getLogger("threadmark.http")


class UnreadAnswer:
    """Watches a connection whose answer waits for its client; breaks it off when nothing is taken for `unread_s`.

    A client that takes little at a time is not broken off, however long its answer takes.
    """

    def __init__(self, transport: asyncio.Transport, *, unread_s: float, tick_s: float) -> None:
        self._transport, self._unread_s, self._tick_s = transport, unread_s, tick_s
        self._loop = asyncio.get_running_loop()
        self._byte_count, self._taken_s = 0, 0.0
        self._looking: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """The connection takes no more: nothing is written until its client has read."""
        self._byte_count, self._taken_s = self._unread(), self._loop.time()
        if self._looking is None:
            self._looking = self._loop.call_later(self._tick_s, self._look)

    def end(self) -> None:
        """The client has read, or gone."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def _look(self) -> None:
        unread, now_s = self._unread(), self._loop.time()
        if unread < self._byte_count:
            self._byte_count, self._taken_s = unread, now_s
        elif now_s - self._taken_s > self._unread_s:
            self._looking = None
            _LOG.info("an answer was broken off: its client takes nothing", extra={"unread_bytes": unread})
            self._transport.abort()
            return
        self._looking = self._loop.call_later(self._tick_s, self._look)

    def _unread(self) -> int:
        """Bytes that the client's machine has not taken. The system's own buffer hides for minutes that a slow one
        reads, so it is counted too."""
        queued = array.array("i", [0])
        try:
            fcntl.ioctl(self._transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, queued)
        except OSError:
            return self._transport.get_write_buffer_size()
        return self._transport.get_write_buffer_size() + queued[0]
