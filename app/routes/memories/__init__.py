"""Routes of memories, recalls and the store."""
