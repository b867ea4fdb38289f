"""The worker process: claims, lease, notifications, the live feed, statistics."""
