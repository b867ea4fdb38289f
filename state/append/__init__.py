"""Writing journals: appends under a fence, the hash chain, and updates from outside of a run."""
