"""The commands of `threadmark`: each a module with `add_to(commands)`, which declares it, and what it runs."""
