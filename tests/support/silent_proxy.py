"""A TCP proxy that can fall silent: it takes connections and bytes as before and passes nothing on, either way.

That is what a host that vanished without a reset looks like, and a firewall that forgot a connection.
"""

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self

__all__ = ["SilentProxy"]

POLL_S = 0.05
CHUNK = 65_536


class SilentProxy:
    """Listens on a port of loopback in front of another one; use it in a `with`."""

    def __init__(self, port: int) -> None:
        self._behind = port
        self._speaks = threading.Event()
        self._speaks.set()
        self._closed = threading.Event()
        self._open: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(POLL_S)
        self.port: int = self._listening.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, name="proxy", daemon=True)]

    def fall_silent(self) -> None:
        """Drop every byte from now on; nothing is closed, and connections are accepted as before."""
        self._speaks.clear()

    def speak(self) -> None:
        """Pass new connections on again. Those that were silent stay so: their bytes are lost."""
        self._speaks.set()

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        for thread in self._threads:
            thread.join()
        for each in (self._listening, *self._open):
            each.close()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._listening.accept()
            except TimeoutError:
                continue
            self._open.append(client)
            if not self._speaks.is_set():
                continue
            server = socket.create_connection(("127.0.0.1", self._behind))
            self._open.append(server)
            for source, target in ((client, server), (server, client)):
                thread = threading.Thread(target=self._pass_on, args=(source, target), name="proxied", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        source.settimeout(POLL_S)
        is_lost = False
        while not self._closed.is_set():
            try:
                received = source.recv(CHUNK)
            except TimeoutError:
                continue
            except OSError:
                received = b""
            is_lost |= not self._speaks.is_set()
            if is_lost and received:
                continue
            if not received:
                if not is_lost:
                    with contextlib.suppress(OSError):
                        target.shutdown(socket.SHUT_WR)
                return
            with contextlib.suppress(OSError):
                target.sendall(received)
