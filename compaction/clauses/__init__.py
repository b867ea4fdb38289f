"""Clauses: constraints, decisions, commitments, open questions and corrections in six languages."""

from typing import TYPE_CHECKING

# Imported at once: the module `sentences` would take the place of the function otherwise.
from threadmark.compaction.clauses.sentences import sentences
from threadmark.lazy import lazy_exports

if TYPE_CHECKING:
    from threadmark.compaction.clauses.clause import Clause, ClauseClass
    from threadmark.compaction.clauses.clause_extraction import (
        clause_form,
        extract_clauses,
        is_negative,
        without_polarity,
    )
else:
    __getattr__, __dir__ = lazy_exports(__name__, __file__)

__all__ = ["Clause", "ClauseClass", "clause_form", "extract_clauses", "is_negative", "sentences", "without_polarity"]
