"""One turn of a run: the next action, steps, tool calls, the prompt view, and the turn's side of the journal."""
