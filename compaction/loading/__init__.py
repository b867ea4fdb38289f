"""What a compaction works on, from the journal and the store: a thread with its view, and analyses made ahead."""
