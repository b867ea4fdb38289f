"""The life of a run: acceptance, claims, liveness of workers, cancellation, queries and fleet figures."""
