"""Clauses: constraints, decisions, commitments, open questions and corrections in six languages."""

from threadmark.compaction.clauses.clause import Clause, ClauseClass
from threadmark.compaction.clauses.clause_extraction import clause_form, extract_clauses, is_negative, without_polarity
from threadmark.compaction.clauses.sentences import sentences

__all__ = ["Clause", "ClauseClass", "clause_form", "extract_clauses", "is_negative", "sentences", "without_polarity"]
