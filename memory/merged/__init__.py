"""What was merged while names were compared folded: a report of it, and the way to part it by hand."""
