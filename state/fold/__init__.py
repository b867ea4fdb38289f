"""From entries to the state of a thread, and the cache that folds only what is new."""
