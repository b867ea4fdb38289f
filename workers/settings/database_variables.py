"""The environment variables that say how long a process waits for PostgreSQL; part of the one list of variables."""

from threadmark.db import DEFAULT_LIMITS
from threadmark.workers.settings.values import seconds
from threadmark.workers.settings.variable import Variable

__all__ = ["LIMIT", "LIMIT_VARIABLES"]

#: What the fields of these variables begin with: the rest is an attribute of `threadmark.db.Limits`.
LIMIT = "limits."
_S_MIN, _S_MAX = 0.1, 86_400.0
_MEANINGS = {
    "request_s": "One read or write with all that it waits for (its turn, a new connection, other attempts); then the "
    "request ends with 503 and `Retry-After`. A last attempt may add THREADMARK_DATABASE_CONNECT_S. SQLite has this "
    "limit alone.",
    "connect_s": "A new connection to PostgreSQL, until the server has answered. Whole seconds.",
    "turn_write_s": "A statement on the connection that writes for turns. A worker that cannot write for its turns for "
    "as long as a lease lasts lets go of them.",
    "write_s": "A statement on the connections that write everything else, in both databases.",
    "read_s": "A statement that reads, in both databases.",
    "lease_s": "A statement that renews a worker's lease.",
    "liveness_s": "A statement that shows this worker alive, or looks which others are.",
    "migration_s": "A statement of a migration.",
    "maintenance_s": "A statement of a command, such as `threadmark verify`.",
    "keepalive_s": "Silence on a connection after which the kernel asks whether the other host is there (TCP "
    "keepalive); three questions without an answer, a third of this apart, end the connection.",
    "unacknowledged_s": "How long what was sent may stay without the other host's acknowledgement "
    "(`tcp_user_timeout`).",
}

LIMIT_VARIABLES: tuple[Variable, ...] = tuple(
    Variable(
        name=f"THREADMARK_DATABASE_{name.upper()}",
        field=f"{LIMIT}{name}",
        default=f"{getattr(DEFAULT_LIMITS, name):g}",
        shown_default=f"`{getattr(DEFAULT_LIMITS, name):g}`",
        read_value=seconds(_S_MIN, _S_MAX),
        allowed=f"seconds from {_S_MIN:g} to {_S_MAX:g}",
        example=f"{getattr(DEFAULT_LIMITS, name):g}",
        meaning=meaning,
    )
    for name, meaning in _MEANINGS.items()
)
