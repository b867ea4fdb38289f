"""What authors of agents import: agents, tools, policies, and the tools over memory and dropped units."""
