"""HTTP/1.1 on a connection: what arrives by half, or is not read, is given up in time; refusals are JSON with an id."""

import asyncio
import logging
import secrets
import sys
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from threadmark.app.edge.drain import DRAIN_BYTES_MAX, DRAIN_S
from threadmark.app.edge.shield import SECURITY_HEADERS
from threadmark.app.edge.unread_answer import UnreadAnswer
from threadmark.app.http.problem import MEDIA_TYPE, Problem

__all__ = ["HttpProtocol"]

REQUEST_ID_BYTES = 16
_TOO_LARGE, _TIMED_OUT = 431, 408
_LOG = logging.getLogger("threadmark.http")


class _StrictConnection(h11.Connection):
    """Refuses what two servers in a row could read as two different requests."""

    def next_event(self) -> Any:
        """The next event. Raises RemoteProtocolError for a request that states its length in two ways."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name.lower() for name, _ in event.headers}
            if {b"content-length", b"transfer-encoding"} <= names:
                raise h11.RemoteProtocolError("a request has Content-Length or Transfer-Encoding, and never both")
        return event


class HttpProtocol(H11Protocol):
    """uvicorn's protocol, with time-outs for heads and bodies that do not arrive, and refusals in our one shape."""

    #: A head has to be whole so long after its first byte, or after the connection was made (seconds).
    head_s = 10.0
    #: Nothing of a body may come for so long.
    idle_s = 20.0
    #: A body has so long, and longer by what it has sent at this rate: bytes that drip hold no connection for ever.
    body_s, bytes_per_s = 60.0, 16 * 1024
    #: Nothing of an answer may be taken for so long.
    unread_s = 60.0
    #: How often a connection that waits is looked at.
    tick_s = 1.0
    #: So long after the stop a request that was on its way over an idle connection is still served.
    linger_s = 0.5

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.conn = _StrictConnection(h11.SERVER, self.conn._max_incomplete_event_size)
        self._awaited: str | None = None
        self._since_s = self._heard_s = 0.0
        self._byte_count = 0
        self._looking: asyncio.TimerHandle | None = None
        self._is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head."""
        super().connection_made(transport)
        self._unread = UnreadAnswer(transport, unread_s=self.unread_s, tick_s=self.tick_s)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        self._awaited = None
        super().connection_lost(exc)
        self._unread.end()
        self._watch_no_more()

    def pause_writing(self) -> None:
        """Wait for the client to read, but not for ever."""
        super().pause_writing()
        self._unread.begin()

    def resume_writing(self) -> None:
        """Go on: the client has read."""
        super().resume_writing()
        self._unread.end()

    def data_received(self, data: bytes) -> None:
        """Take what came, and note that it did."""
        self._heard_s = self.loop.time()
        self._byte_count += len(data)
        if self._is_refused:
            if self._byte_count > DRAIN_BYTES_MAX:
                self.transport.abort()
            return
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Go on with the next request; a half of it may have arrived already."""
        super().on_response_complete()
        self._watch()

    def shutdown(self) -> None:
        """Close at the server's stop: after the answer that is under way, else after a while for a request to arrive.

        An idle connection that is closed at once loses the request that its client is just sending, and a client
        cannot know whether it was done. What arrives until then is answered with `Connection: close`.
        """
        if self._is_idle:
            self.loop.call_later(self.linger_s, self._close_idle)
        else:
            if self.cycle is not None:
                self.cycle.default_headers = self.server_state.default_headers
            super().shutdown()

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _close_idle(self) -> None:
        if self._is_idle and not self.transport.is_closing():
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request."""
        error = sys.exception()
        status = getattr(error, "error_status_hint", 400)
        code = "head_too_large" if status == _TOO_LARGE else "bad_request"
        self._refuse(Problem(status=status, code=code, detail=str(error or msg)))

    def _watch(self) -> None:
        """Note what the connection waits for, and since when."""
        awaited = self._half()
        if awaited != self._awaited:
            self._awaited, self._since_s, self._byte_count = awaited, self.loop.time(), 0
        if awaited is None:
            self._watch_no_more()
        elif self._looking is None:
            self._looking = self.loop.call_later(self.tick_s, self._look)

    def _watch_no_more(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def _half(self) -> str | None:
        """What has arrived by half: a head (or nothing at all yet), or a body."""
        if self._is_refused or self.transport.is_closing():
            return None
        if self.conn.their_state is h11.SEND_BODY:
            return "body"
        is_head = self.conn.their_state is h11.IDLE and (self.cycle is None or bool(self.conn.trailing_data[0]))
        return "head" if is_head else None

    def _look(self) -> None:
        self._looking, now_s = None, self.loop.time()
        if self.transport.is_closing():
            return
        if self._awaited == "head" and now_s - self._since_s > self.head_s:
            if self.conn.trailing_data[0]:
                self._time_out("the head of the request did not arrive whole")
            else:
                self.transport.close()
        elif self._awaited == "body" and self.flow.read_paused:
            # It is the application that takes its time.
            self._heard_s = now_s
        elif self._awaited == "body" and (now_s - self._heard_s > self.idle_s or now_s > self._body_due_s):
            self._time_out("the body of the request did not arrive whole")
        self._watch()

    @property
    def _body_due_s(self) -> float:
        return self._since_s + self.body_s + self._byte_count / self.bytes_per_s

    def _time_out(self, why: str) -> None:
        self._refuse(Problem(status=_TIMED_OUT, code="request_timeout", detail=f"{why} in time"))

    def _refuse(self, problem: Problem) -> None:
        """Answer by ourselves and close; an answer that has begun is cut off."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            request_id = secrets.token_hex(REQUEST_ID_BYTES)
            body = problem.body(request_id)
            headers = [
                ("content-type", MEDIA_TYPE),
                ("content-length", str(len(body))),
                ("connection", "close"),
                ("x-request-id", request_id),
                *SECURITY_HEADERS,
            ]
            phrase = STATUS_PHRASES[problem.status]
            for event in (
                h11.Response(status_code=problem.status, headers=headers, reason=phrase),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
            client = self.client[0] if self.client else None
            _LOG.info(
                "refused",
                extra={"status": problem.status, "code": problem.code, "request_id": request_id, "client": client},
            )
        if self.cycle is not None and not self.cycle.response_complete:
            # The application hears that its client has gone, and has nothing more to say.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._is_refused = True
        self._unset_keepalive_if_required()
        # A connection that is closed over unread bytes is reset, and the refusal lost on the way.
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(DRAIN_S, self.transport.close)
