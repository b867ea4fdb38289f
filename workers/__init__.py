"""Workers: turns of runs, and what turns are made of. What authors of agents need of it is in `threadmark` itself."""

__all__: list[str] = []
