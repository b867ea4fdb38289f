"""How much of the server one tenant may have at once; a request for more is answered with 429 and the bound's name."""

from typing import Annotated

from threadmark.workers.settings.declaration import Declared, Reads, declared
from threadmark.workers.settings.values import seconds, whole

__all__ = ["TenantBounds"]

_COUNT_MAX = 1_000_000
Count = Annotated[int, Reads(whole(1, _COUNT_MAX), f"a whole number from 1 to {_COUNT_MAX}")]


class TenantBounds(Declared):
    """Counts of what is kept waiting or open, and the time of one answer."""

    compactions_per_tenant_max: Count = declared(8, example="8")
    """Compactions that requests of one tenant wait for at once in a process, dry runs among them. Those in the
    background are not counted."""

    compactions_per_process_max: Count = declared(32, example="32")
    """The same of all tenants together."""

    open_streams_max: Count = declared(1_000, example="1000")
    """Answers to one tenant that are open at once in a process: streams of runs, runs that are waited for and
    joined, and events of jobs."""

    scheduled_runs_max: Count = declared(10_000, example="10000")
    """Runs of one tenant that wait for their time (`after_seconds`)."""

    open_waits_max: Count = declared(10_000, example="10000")
    """Open questions of one tenant. With so many, no run is accepted but those that answer, and those on a thread
    that asks for an approval itself."""

    background_jobs_max: Count = declared(1_000, example="1000")
    """Compactions in the background and jobs of compactions that one tenant has open, paused ones too."""

    memory_erasures_max: Count = declared(100, example="100")
    """Erasures of memory that one tenant has begun and that are not done."""

    memory_imports_max: Count = declared(2, example="2")
    """Imports of memory of one tenant at once in a process, from the first byte of their body."""

    memory_exports_max: Count = declared(4, example="4")
    """Exports of memory that one tenant reads at once from a process. One of which nothing is taken for a minute is
    broken off."""

    answer_s: Annotated[float, Reads(seconds(0.1, 3600), "seconds from 0.1 to 3600")] = declared(15.0, example="15")
    """How long reading, ranking and wording for one answer may take, with its turns among other tenants; then it is
    503 `took_too_long`. Answers that come in parts have it for each part. Runs and compactions that are waited for
    do not count."""
