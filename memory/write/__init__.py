"""Writing memory: preparation, new assertions, revisions, approval, quarantine, extraction, keyed items."""
