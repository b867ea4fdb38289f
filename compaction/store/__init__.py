"""The statements of compaction, thin and without rules: values in, rows out, each inside the caller's unit."""
