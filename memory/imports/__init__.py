"""Imports: lines are staged unseen, in small transactions, and published by one small commit."""

__all__: list[str] = []
