"""Threadmark: a self-hosted server for chat agents. What authors of agents import is at `threadmark.workers.agents`."""
