"""The edge: what happens to every request and answer, before and after the routes, whatever the route."""

from typing import TYPE_CHECKING

from threadmark.lazy import lazy_exports

if TYPE_CHECKING:
    from threadmark.app.edge.cors import Cors
    from threadmark.app.edge.drain import Drain
    from threadmark.app.edge.hangup import HangUp
    from threadmark.app.edge.shield import Shield
    from threadmark.app.edge.trace import Trace
else:
    __getattr__, __dir__ = lazy_exports(__name__, __file__)

__all__ = ["Cors", "Drain", "HangUp", "Shield", "Trace"]
