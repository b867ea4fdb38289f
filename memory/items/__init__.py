"""Keyed JSON documents over the rows of memory, for callers who want a store and not statements."""
