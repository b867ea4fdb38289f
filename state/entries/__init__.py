"""What a journal records: entries, messages, values, ids, positions, branches, and what they say of steps and runs.
Pure.
"""
