"""Routes of keys, tasks, the fleet, verification and the service itself."""
