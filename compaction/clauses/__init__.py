"""Clauses: constraints, decisions, commitments, open questions and corrections in six languages."""

from compaction.clauses.clause import Clause, ClauseClass
from compaction.clauses.extract import clause_form, extract_clauses, is_negative, without_polarity
from compaction.clauses.sentences import sentences

__all__ = ["Clause", "ClauseClass", "clause_form", "extract_clauses", "is_negative", "sentences", "without_polarity"]
