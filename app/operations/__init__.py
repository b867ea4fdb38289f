"""What operators watch: metrics, readiness, logs."""
