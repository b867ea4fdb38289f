"""One compaction: plan, draft, proposal, commit, and what it promotes to memory."""
