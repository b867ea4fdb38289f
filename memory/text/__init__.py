"""Text and what its words say: terms, BM25 weights, irregular words, names as they are compared, dates. Pure."""
