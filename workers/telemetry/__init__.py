"""Traces of runs: spans from journals, and the exporter."""
