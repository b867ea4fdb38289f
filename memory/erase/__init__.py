"""Erasing memories: jobs, what they remove, copies in other stores, and what is kept for a time."""
