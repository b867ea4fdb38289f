"""One request and its answer: JSON, errors, idempotency keys, dependencies of handlers."""
