"""What memory keeps for a time beside assertions: the log of recalls, and receipts."""

from datetime import datetime
from functools import partial

from threadmark.memory.model.instants import to_us
from threadmark.memory.recall.recall_log import forget_before
from threadmark.memory.store.database import Database
from threadmark.memory.store.receipts import forget_expired

__all__ = ["forget_old"]


async def forget_old(database: Database, *, now: datetime, recalls_before: datetime) -> None:
    """Forget the recalls from before an instant and the receipts whose time is over, in batches, and off the disk."""
    while await database.write(partial(forget_before, instant=recalls_before)):
        continue
    while await database.write(partial(forget_expired, now=to_us(now))):
        continue
    await database.checkpoint()
