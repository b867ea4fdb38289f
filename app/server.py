"""Serving: a socket that is ours before anything else begins, and a server that stops at a signal."""

import asyncio
import contextlib
import errno
import signal
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import uvicorn

from threadmark.user_error import UserError

if TYPE_CHECKING:
    from litestar import Litestar

__all__ = ["CannotListen", "Server", "listen", "url_of"]

#: By its name: a worker's health port listens too, and needs nothing of the API.
_HTTP_PROTOCOL = "threadmark.app.edge.http1:HttpProtocol"
BACKLOG = 2_048
#: Requests that have not ended this long after the stop was asked for are cancelled. Whole seconds.
GRACE_S = 3
KEEP_ALIVE_S = 75
_STOPS = (signal.SIGINT, signal.SIGTERM)


class CannotListen(UserError, OSError):
    """The address cannot be listened on; nothing was started."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on the address. Raises CannotListen, in a sentence that says what to do."""
    try:
        family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        # It listens at once: two sockets that are bound and do not listen yet can share a port.
        return socket.create_server(place[:2], family=family, backlog=BACKLOG)
    except socket.gaierror as error:
        raise CannotListen(f"HOST is {host!r}, which is no name known here; for example HOST=127.0.0.1") from error
    except OSError as error:
        raise CannotListen(_why(error, host, port)) from error


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is taken by another process; stop that one, or choose another: PORT={port + 1}"
    if error.errno == errno.EACCES:
        return f"port {port} needs more rights than this user has; choose one above 1023, for example PORT=8123"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"HOST is {host!r}, which is no address of this machine; for example HOST=127.0.0.1"
    return f"cannot listen on port {port} of {host}: {error.strerror}"


def url_of(listening: socket.socket) -> str:
    """Where a client on this machine reaches the socket."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared with, not listened on
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """uvicorn, reporting when it is ready and when it begins to stop; its exit is clean after a signal.

    At SIGTERM or SIGINT `stopping` is set, so that streams end by themselves; requests get GRACE_S. A second signal
    does not wait for them.
    """

    def __init__(self, app: "Litestar", *, stopping: asyncio.Event, on_ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=_HTTP_PROTOCOL,
                ws="none",
                lifespan="on",
                loop="asyncio",
                log_config=None,
                access_log=False,
                # Which proxies are believed is ours to say, see client_address.
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        self._stopping = stopping
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, then tell so."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, answer what still comes over those that are open, and close them."""
        self.server_state.default_headers.append((b"connection", b"close"))
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at a signal, and swallow it: raising it again, as uvicorn does, would end the process uncleanly."""
        loop = asyncio.get_running_loop()
        for each in _STOPS:
            loop.add_signal_handler(each, self._begin_stop)
        try:
            yield
        finally:
            for each in _STOPS:
                loop.remove_signal_handler(each)

    def stop(self) -> None:
        """Stop as at a signal."""
        self._begin_stop()

    def _begin_stop(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True
        self._stopping.set()
