"""What entries add up to: the state of a thread, its steps and its history; and a cache, so that only new entries are
folded.
"""
