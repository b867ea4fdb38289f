"""How long a process waits for PostgreSQL, by what it waits for. Seconds."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["DEFAULT_LIMITS", "Limits", "Purpose"]


class Purpose(StrEnum):
    """What a connection is for."""

    TURN_WRITE = "turn_write"
    WRITE = "write"
    READ = "read"
    LEASE = "lease"
    LIVENESS = "liveness"
    MIGRATION = "migration"
    MAINTENANCE = "maintenance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one process. SQLite knows only `request_s`: what it waits for is on this machine.

    Attributes:
        turn_write_s: A statement of workers that hold threads: appends and ends of turns.
        write_s: Any other statement that writes.
        read_s: A statement that reads.
        lease_s: A statement that renews or ends a lease.
        liveness_s: A statement that shows this process alive, or looks who else is.
        migration_s: A statement that changes the schema.
        maintenance_s: A statement of a command, such as `threadmark verify`.
        request_s: One read or write with all that it waits for: its turn, a new connection, other attempts. A last
            attempt that began before goes on for as long as a connection takes.
        connect_s: A new connection, until the server has answered.
        keepalive_s: Silence after which the kernel asks whether the other host is there; after three questions
            without an answer, a third of this apart, the connection is broken.
        unacknowledged_s: How long what was sent may stay without the other host's acknowledgement.
    """

    turn_write_s: float = 8.0
    write_s: float = 10.0
    read_s: float = 10.0
    lease_s: float = 3.0
    liveness_s: float = 2.0
    migration_s: float = 3600.0
    maintenance_s: float = 600.0
    request_s: float = 14.0
    connect_s: float = 5.0
    keepalive_s: float = 6.0
    unacknowledged_s: float = 8.0

    def of(self, purpose: Purpose) -> float:
        """The limit of a statement on a connection for `purpose`."""
        limit: float = getattr(self, f"{purpose.value}_s")
        return limit


DEFAULT_LIMITS = Limits()
