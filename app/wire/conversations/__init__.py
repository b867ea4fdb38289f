"""JSON shapes of assistants, threads, runs, steps, events, messages and waits."""
