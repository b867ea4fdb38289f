"""Background tasks: the runner, and what each kind of task does."""
