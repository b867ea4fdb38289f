"""Threads of a worker by purpose: what keeps it alive never waits for what users ask."""

from threadmark.db.execution.pools import Pool

__all__ = ["COUNTING", "UPKEEP"]

#: Counts of tokens beside the event loop.
COUNTING = Pool("threadmark-counting", 2)
#: Lease, liveness and starts: calls that block for a commit.
UPKEEP = Pool("threadmark-upkeep", 2)
