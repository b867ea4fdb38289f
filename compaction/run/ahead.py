"""What a commit of a compaction does not wait for: the rows of its ledger, and analyses, in batches before it."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection

from threadmark.compaction.errors import HoldLost
from threadmark.compaction.ledger import Row
from threadmark.compaction.pools import COMPACTING
from threadmark.compaction.run.commit import Commit, still_there
from threadmark.compaction.store import holds, ledger_rows, rows_ahead
from threadmark.state import Database

__all__ = ["clear_left", "clear_thread", "write_ahead"]

#: Analyses of one commit; each has all that was found in a message.
ANALYSIS_COUNT = 128
#: Compactions whose rows are removed in one sweep.
LEFT_COUNT_MAX = 100


async def write_ahead(database: Database, done: Commit) -> None:
    """Write what the commit will find. Repeatable: what an earlier attempt left is removed first.

    Each batch raises what the commit would raise. An erasure that comes in between takes what is written, and the next
    batch, or the commit, is refused.
    """
    thread = done.loaded.thread
    added, rows = list(done.added.items()), done.proposal.ledger.rows
    for start in range(0, len(added), ANALYSIS_COUNT):
        found = added[start : start + ANALYSIS_COUNT]
        await database.write(partial(_add_analyses, done=done, found=found), thread=thread.number, repeatable=True)
    for first in range(0, len(rows), rows_ahead.BATCH_COUNT):
        # Beside the event loop, and not under the write lock.
        values = await COMPACTING.run(partial(_values, done, first, rows[first : first + rows_ahead.BATCH_COUNT]))
        unit = partial(_add_rows, done=done, first=first, values=values)
        await database.write(unit, thread=thread.number, repeatable=True)


async def clear_thread(
    database: Database, thread: int, mine: str, holder: str, now_us: int, beating: holds.Beating
) -> None:
    """Remove rows ahead: of `mine`, which `holder` performs, and of compactions of the thread that nothing performs."""
    left = await database.read(
        lambda connection: rows_ahead.left_ahead(
            connection, now_us, beating, count_max=LEFT_COUNT_MAX, thread=thread, mine=mine
        )
    )
    for compaction_id in left:
        await _clear(database, compaction_id, now_us, beating, holder if compaction_id == mine else None)


async def clear_left(database: Database, now_us: int, beating: holds.Beating) -> int:
    """Remove the rows of uncommitted compactions that no process performs; returns the number of compactions."""
    left = await database.read(
        lambda connection: rows_ahead.left_ahead(connection, now_us, beating, count_max=LEFT_COUNT_MAX)
    )
    for compaction_id in left:
        await _clear(database, compaction_id, now_us, beating, None)
    return len(left)


async def _clear(
    database: Database, compaction_id: str, now_us: int, beating: holds.Beating, holder: str | None
) -> None:
    def unit(connection: Connection) -> bool:
        allowed = ~holds.is_held(connection, now_us, beating)
        if holder is not None:
            allowed |= rows_ahead.performed_by(holder)
        return rows_ahead.remove_ahead(connection, compaction_id, allowed)

    more = True
    while more:
        more = await database.write(unit, repeatable=True)


def _values(done: Commit, first: int, rows: Sequence[Row]) -> list[dict[str, Any]]:
    thread, compaction_id = done.loaded.thread, done.compaction.compaction_id
    return [
        ledger_rows.row_values(compaction_id, thread.tenant_id, thread.number, first + at, row)
        for at, row in enumerate(rows)
    ]


def _add_rows(connection: Connection, done: Commit, first: int, values: Sequence[dict[str, Any]]) -> None:
    still_there(connection, done.loaded, done.fence)
    if not rows_ahead.add_ahead(connection, done.compaction.compaction_id, done.holder, first, values):
        raise HoldLost(done.compaction.compaction_id, done.holder)


def _add_analyses(connection: Connection, done: Commit, found: Sequence[tuple[str, Any]]) -> None:
    still_there(connection, done.loaded, done.fence)
    ledger_rows.add_analyses(connection, done.loaded.thread.number, dict(found))
