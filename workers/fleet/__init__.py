"""The worker process: claims, lease, notifications, the runner of background tasks, statistics."""
