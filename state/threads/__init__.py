"""Threads and what belongs to them: labels, numbers, receipts of idempotency keys, erasure, admin queries."""
