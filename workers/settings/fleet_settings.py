"""How long workers hold runs, how often they look for more, and what they keep in memory."""

from typing import Annotated

from threadmark.workers.settings.declaration import Declared, Reads, declared
from threadmark.workers.settings.server_settings import PORT
from threadmark.workers.settings.values import seconds, whole

__all__ = ["FleetSettings"]


class FleetSettings(Declared):
    """Leases, sweeps and folds of a worker."""

    lease_ttl_s: Annotated[float, Reads(seconds(0.1, 3600), "seconds from 0.1 to 3600")] = declared(10.0, example="10")
    """How long the lease of a worker lasts without renewal: a dead worker is noticed this late, at most."""

    heartbeat_s: Annotated[
        float, Reads(seconds(0.01, 3600), "seconds from 0.01 to 3600, less than THREADMARK_LEASE_TTL_S")
    ] = declared(2.0, example="2")
    """How often a worker renews its lease."""

    health_port: Annotated[int | None, PORT] = declared(shown="none: no port is opened", example="8124")
    """Where `threadmark worker` answers `/ok`, `/ready` and `/metrics`, on HOST and without a key.
    `/ready` is 503 while one of its loops is late by several intervals."""

    sweep_s: Annotated[float, Reads(seconds(0.01, 3600), "seconds from 0.01 to 3600")] = declared(1.0, example="1")
    """How often a worker looks for runs that no worker moves."""

    folds_mib: Annotated[int, Reads(whole(0, 65_536), "a whole number from 0 to 65536")] = declared(64, example="64")
    """MiB of journals whose folds a process keeps, so that a thread's next turn reads what is new.
    They take about three times that in memory; 0: none."""
