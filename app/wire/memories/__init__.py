"""JSON shapes of memories, and of requests about them."""
