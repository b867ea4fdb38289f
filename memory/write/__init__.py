"""Writing memory: preparation, new assertions, revisions, quarantine, extraction, keyed items."""
