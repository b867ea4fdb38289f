"""How long a process waits for PostgreSQL, by what it waits for."""

from dataclasses import fields
from typing import Annotated

from threadmark.db import DEFAULT_LIMITS, Limits
from threadmark.workers.settings.declaration import Declared, Reads, declared
from threadmark.workers.settings.values import seconds

__all__ = ["DatabaseLimits"]

_S_MIN, _S_MAX = 0.1, 86_400.0
Wait = Annotated[float, Reads(seconds(_S_MIN, _S_MAX), f"seconds from {_S_MIN:g} to {_S_MAX:g}")]


def _waits(default: float) -> float:
    """A wait, whose default the database layer knows."""
    wait: float = declared(default, example=f"{default:g}")
    return wait


class DatabaseLimits(Declared):
    """The fields of `threadmark.db.Limits`, each with `database_` before its name."""

    database_request_s: Wait = _waits(DEFAULT_LIMITS.request_s)
    """One read or write with all that it waits for (its turn, a new connection, other attempts); then the request
    ends with 503 and `Retry-After`. A last attempt may add THREADMARK_DATABASE_CONNECT_S. SQLite has this limit
    alone."""

    database_connect_s: Wait = _waits(DEFAULT_LIMITS.connect_s)
    """A new connection to PostgreSQL, until the server has answered. Whole seconds."""

    database_turn_write_s: Wait = _waits(DEFAULT_LIMITS.turn_write_s)
    """A statement on the connection that writes for turns. A worker that cannot write for its turns for as long as a
    lease lasts lets go of them."""

    database_write_s: Wait = _waits(DEFAULT_LIMITS.write_s)
    """A statement on the connections that write everything else, in both databases."""

    database_read_s: Wait = _waits(DEFAULT_LIMITS.read_s)
    """A statement that reads, in both databases."""

    database_lease_s: Wait = _waits(DEFAULT_LIMITS.lease_s)
    """A statement that renews a worker's lease."""

    database_liveness_s: Wait = _waits(DEFAULT_LIMITS.liveness_s)
    """A statement that shows this worker alive, or looks which others are."""

    database_migration_s: Wait = _waits(DEFAULT_LIMITS.migration_s)
    """A statement of a migration."""

    database_maintenance_s: Wait = _waits(DEFAULT_LIMITS.maintenance_s)
    """A statement of a command, such as `threadmark verify`."""

    database_keepalive_s: Wait = _waits(DEFAULT_LIMITS.keepalive_s)
    """Silence on a connection after which the kernel asks whether the other host is there (TCP keepalive); three
    questions without an answer, a third of this apart, end the connection."""

    database_unacknowledged_s: Wait = _waits(DEFAULT_LIMITS.unacknowledged_s)
    """How long what was sent may stay without the other host's acknowledgement (`tcp_user_timeout`)."""

    @property
    def limits(self) -> Limits:
        """These waits, by the names of the database layer."""
        return Limits(**{field.name: getattr(self, f"database_{field.name}") for field in fields(Limits)})
