"""Threads of memory by purpose: a question never waits behind the texts of an import. Tenants take turns in each."""

from threadmark.db.execution.pools import Pool

__all__ = ["EXPORTS", "IMPORTS", "QUESTIONS", "TEXTS", "UPKEEP"]

#: The question of a recall, embedded and scored.
QUESTIONS = Pool("memory-question", 2)
#: Texts of writes, a batch at a time.
TEXTS = Pool("memory-text", 2)
#: Opening, claiming and closing.
UPKEEP = Pool("memory-upkeep", 2)
#: Exports. Each holds its thread to its end, so a tenant has one of the two.
EXPORTS = Pool("memory-export", 2)
#: Lines of imports, read and checked before they are staged.
IMPORTS = Pool("memory-import", 2)
