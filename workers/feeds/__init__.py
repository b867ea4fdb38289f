"""The live feed: what streams between two entries of a journal, and the feed of a single process."""
