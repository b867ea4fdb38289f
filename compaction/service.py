"""Everything that may be asked of compaction, over one database, with one counter and one clock."""

from collections.abc import Callable, Collection
from datetime import datetime, timedelta

from sqlalchemy import Connection

from threadmark.compaction.compactions import Compactions
from threadmark.compaction.drops.drop_queries import Drops
from threadmark.compaction.drops.expansion import Segments
from threadmark.compaction.drops.recall_log import Recalls
from threadmark.compaction.erase.entry_erasure import ErasedCounts, erase_entries
from threadmark.compaction.erase.retention import hash_words
from threadmark.compaction.loading.prior_analysis import Learnt, learn
from threadmark.compaction.policy.named_policies import Policies
from threadmark.compaction.store import holds, orders
from threadmark.compaction.summary import TokenCounter, estimate_tokens
from threadmark.compaction.verification import LedgerCheck, check_compaction, check_thread
from threadmark.compaction.view_history import Views
from threadmark.state import Database, FoldCache, Folded, NotFound, Thread, get_thread, to_us

__all__ = ["CompactionService"]


class CompactionService:
    """The verbs, by what they are about.

    `count` counts the tokens of a text for every decision of a compaction, `now` is the clock. `folds` are those that
    the process keeps; without them every look at a thread folds its whole journal. `beating` says which workers live
    although their leases have ended (`Liveness.beating`).
    """

    def __init__(
        self,
        database: Database,
        *,
        now: Callable[[], datetime],
        count: TokenCounter = estimate_tokens,
        fold_cache: FoldCache | None = None,
        beating: holds.Beating = holds.none_beating,
    ) -> None:
        self._database, self._now = database, now
        self.compactions = Compactions(database, count, now, fold_cache, beating)
        self.views = Views(database, self.compactions.count_message, now, fold_cache)
        self.drops = Drops(database, count, self.compactions.count_message, fold_cache)
        self.segments = Segments(database, self.compactions.count_message)
        self.recalls = Recalls(database, self.compactions.count_message, now, fold_cache)
        self.policies = Policies(database, now)

    async def learn(self, thread: Thread, folded: Folded) -> Learnt:
        """Analyse what is new in the thread, so that its next compaction need not. See `prior_analysis`."""
        return await learn(self._database, thread, folded)

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

    async def erase(self, tenant_id: str, thread_id: str, seqs: Collection[int]) -> ErasedCounts:
        """Take what these entries said out of everything that compaction keeps of the thread; how much that was.

        Ledgers verify as before; a summary that covered one of them is written again, without a model. Ask for it
        before the journal loses the entries, in the order in which memory and journals are erased. Raises NotFound.
        """

        thread = await self._database.read(lambda connection: get_thread(connection, tenant_id, thread_id))
        return await self._erase(thread.number, seqs)

    async def erase_by_number(self, thread: int, seqs: Collection[int]) -> ErasedCounts:
        """`erase`, of a thread by its number; nothing for a thread that is gone."""

        try:
            return await self._erase(thread, seqs)
        except NotFound:
            return ErasedCounts()

    async def _erase(self, thread: int, seqs: Collection[int]) -> ErasedCounts:
        count, count_message = self.compactions.count, self.compactions.count_message
        return await erase_entries(self._database, thread, seqs, count=count, count_message=count_message)

    async def hash_words(self, kept: timedelta, count_max: int) -> int:
        """Have ledgers that are older than `kept` keep digests in the place of words; how many, at most `count_max`."""
        now = self._now()
        return await hash_words(self._database, to_us(now - kept), to_us(now), count_max)

    async def verify_thread(self, tenant_id: str, thread_id: str) -> list[LedgerCheck]:
        """All ledgers of a thread and the chain over them, oldest first. Raises NotFound."""
        return await self._database.read(lambda connection: check_thread(connection, tenant_id, thread_id))
