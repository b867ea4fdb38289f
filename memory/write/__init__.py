"""Writing memory: preparation, declarations, new assertions, versions, revisions, approval, quarantine."""
