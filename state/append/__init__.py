"""Journals: written under a fence, copied to other threads, and updated from outside a run."""
