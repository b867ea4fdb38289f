"""The life of a run: acceptance, claims, worker liveness, cancellation, queries and fleet figures."""
