"""Erasing memories: jobs, what they remove, and copies in other stores."""
