"""Runs over HTTP: admission, start, cancellation, outcome, readers, and updates of a thread's state."""
