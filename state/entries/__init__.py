"""What a journal records: entries, messages, values, ids, positions, branches, the hash chain, run statuses. Pure."""
