"""Erasure and retention of words in ledgers, summaries and caches."""
