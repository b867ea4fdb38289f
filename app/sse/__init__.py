"""Answers that stay open: a run's events as they come, and results that are waited for."""

from typing import TYPE_CHECKING

from threadmark.lazy import lazy_exports

if TYPE_CHECKING:
    from threadmark.app.sse.event_tail import follow
    from threadmark.app.sse.framing import HEARTBEAT, frame
    from threadmark.app.sse.live_response import LiveResponse
else:
    __getattr__, __dir__ = lazy_exports(__name__, __file__)

__all__ = ["HEARTBEAT", "LiveResponse", "follow", "frame"]
