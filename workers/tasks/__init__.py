"""Background tasks: what each kind of task does, and what a handler is given."""
