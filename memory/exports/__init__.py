"""Exports: everything that a scope covers as JSON lines, and the file in which they wait."""

__all__: list[str] = []
