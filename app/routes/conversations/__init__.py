"""Routes of assistants, threads, runs, steps, waits and states."""
