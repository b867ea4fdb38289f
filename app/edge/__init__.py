"""The edge: what happens to every request and answer, before and after the routes, whatever the route."""

from threadmark.app.edge.cors import Cors
from threadmark.app.edge.drain import Drain
from threadmark.app.edge.shield import Shield
from threadmark.app.edge.trace import Trace

__all__ = ["Cors", "Drain", "Shield", "Trace"]
