"""Threads of compaction by purpose. Tenants take turns in each of them."""

from threadmark.db.execution.pools import Pool

__all__ = ["COMPACTING", "RANKING"]

#: Accounts, analyses, excerpts: seconds of processor time for a long thread.
COMPACTING = Pool("threadmark-compaction", 2)
#: The order of answers to a question about dropped units. It has the limit of an answer.
RANKING = Pool("threadmark-ranking", 2, limited=True)
