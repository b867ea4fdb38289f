"""Connections to PostgreSQL that do not wait without end, whatever has become of the other side.

Three limits, because each sees what the others do not. The server cancels a statement that takes too long. The kernel
breaks a connection whose other host has vanished. And the client stops waiting for a server that is reached and does
not answer: one that is stopped, or a proxy that takes everything and passes nothing on.
"""

import time
from math import ceil
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import PQGen

from threadmark.db.limits import Limits, Purpose

__all__ = ["NoAnswer", "TimedConnection", "allow_until", "connection_options", "prepare_session"]

T = TypeVar("T")
#: How much longer the client waits than the server: a server that is well ends the statement itself, and says why.
GRACE_S = 1.0
#: An answer that has arrived is always read, however late the caller is.
WAIT_S_MIN = 0.1
LOCK_TIMEOUT_MS = 10_000
IDLE_IN_TRANSACTION_MS = 60_000
_SET_LIMITS = (
    "SELECT set_config('statement_timeout', %s, false), set_config('lock_timeout', %s, false),"
    " set_config('idle_in_transaction_session_timeout', %s, false)"
)
_INTERVAL_S = 0.1
_PROBE_COUNT = 3


class NoAnswer(psycopg.OperationalError):
    """The server did not answer in time; the connection is closed, and whether the statement was done is unknown."""

    def __init__(self, waited_s: float) -> None:
        super().__init__(f"no answer within {waited_s:.3g} s; the connection was given up")


class TimedConnection(psycopg.Connection[Any]):
    """A connection whose every wait for the server has an end.

    Attributes:
        answer_s: How long one answer is waited for; None: without end.
        until: An instant of `time.monotonic()` after which nothing is waited for.
    """

    answer_s: float | None = None
    until: float | None = None

    def wait(self, gen: PQGen[T], interval: float = _INTERVAL_S, timeout: float | None = None) -> T:
        """As psycopg's own. Raises NoAnswer, with the connection closed, where no other time-out was asked for."""
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        limit_s = self._limit_s()
        try:
            return super().wait(gen, interval, limit_s)
        except errors._WaitTimeout:
            # Closed and not cancelled: a cancellation would wait for the same server.
            self.close()
            raise NoAnswer(limit_s or 0.0) from None

    def _limit_s(self) -> float | None:
        left_s = None if self.until is None else max(WAIT_S_MIN, self.until - time.monotonic())
        limits = [each for each in (self.answer_s, left_s) if each is not None]
        return min(limits, default=None)


def connection_options(limits: Limits) -> dict[str, Any]:
    """What every connection is opened with; on a Unix socket the kernel leaves out what is about networks."""
    return {
        "connect_timeout": max(1, round(limits.connect_s)),
        "application_name": "threadmark",
        "keepalives": 1,
        "keepalives_idle": max(1, round(limits.keepalive_s)),
        "keepalives_interval": max(1, round(limits.keepalive_s / _PROBE_COUNT)),
        "keepalives_count": _PROBE_COUNT,
        "tcp_user_timeout": ceil(limits.unacknowledged_s * 1_000),
    }


def prepare_session(connection: Any, limits: Limits, purpose: Purpose) -> None:
    """Set the limits of a new connection for `purpose`, on the server and in this process.

    Not as options of the connection: poolers refuse those, or swallow them.
    """
    limit_s = limits.of(purpose)
    if isinstance(connection, TimedConnection):
        connection.answer_s = limit_s + GRACE_S
    statement_ms = ceil(limit_s * 1_000)
    # A lock is given up before the statement is cancelled: waiting for a lock is worth another attempt.
    lock_ms = min(LOCK_TIMEOUT_MS, max(1, statement_ms * 4 // 5))
    connection.execute(_SET_LIMITS, (str(statement_ms), str(lock_ms), str(IDLE_IN_TRANSACTION_MS)))


def allow_until(connection: Any, until: float | None) -> None:
    """Let a driver's connection wait for nothing after this instant of `time.monotonic()`; None takes that back."""
    if isinstance(connection, TimedConnection):
        connection.until = until
