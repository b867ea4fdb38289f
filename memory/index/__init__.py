"""Vector indexes: the port, its implementations, the indexer that keeps them up to date, and rebuilds."""
