"""Answering a question: candidates, the admissibility filter, ranking, the token budget, the block for the
prompt; and the log of what was asked."""
