"""What a compaction reads: the messages of a thread with their places, groups, and the analysis of texts."""
