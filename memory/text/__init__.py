"""Text as the lexical index sees it: terms, BM25 weights, irregular words. Pure."""
