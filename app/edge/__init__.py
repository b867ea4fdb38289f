"""The edge: what happens to every request and answer, before and after the routes, whatever the route."""

from app.edge.cors import Cors
from app.edge.drain import Drain
from app.edge.shield import Shield
from app.edge.trace import Trace

__all__ = ["Cors", "Drain", "Shield", "Trace"]
