"""Settings: environment variables, how their values are read, and the frozen result."""
