"""Background tasks in the state database: added, claimed under a fence, paused, finished."""
