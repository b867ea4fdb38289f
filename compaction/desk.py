"""Everything that may be asked of compaction, over one database, with one counter and one clock."""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Connection

from compaction.looking import Drops
from compaction.service import Compactions
from compaction.store import orders
from compaction.summary import TokenCounter, estimate_tokens
from compaction.verifying import LedgerCheck, check_compaction, check_thread
from compaction.viewing import Views
from state import Database, NotFound

__all__ = ["CompactionService"]


class CompactionService:
    """The verbs, by what they are about.

    `count` counts the tokens of a text for every decision of a compaction, `now` is the clock.
    """

    def __init__(
        self, database: Database, *, now: Callable[[], datetime], count: TokenCounter = estimate_tokens
    ) -> None:
        self._database = database
        self.compactions = Compactions(database, count, now)
        self.views = Views(database, self.compactions.count_message, now)
        self.drops = Drops(database, count, self.compactions.count_message)

    async def verify(self, tenant_id: str, compaction_id: str) -> LedgerCheck:
        """Whether a compaction's ledger is what was sealed, and all that its entries hold, by the log alone.

        Raises NotFound, also for a compaction that was never committed: it has no ledger.
        """

        def query(connection: Connection) -> LedgerCheck:
            found = orders.find_compaction(connection, compaction_id, tenant_id)
            if found is None or not found.ordinal:
                raise NotFound("Committed compaction", compaction_id)
            return check_compaction(connection, found)

        return await self._database.read(query)

    async def verify_thread(self, tenant_id: str, thread_id: str) -> list[LedgerCheck]:
        """All ledgers of a thread and the chain over them, oldest first. Raises NotFound."""
        return await self._database.read(lambda connection: check_thread(connection, tenant_id, thread_id))
