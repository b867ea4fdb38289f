"""Answers that stay open: server-sent events in frames, and responses that are cut when the server stops."""

from typing import TYPE_CHECKING

from threadmark.lazy import lazy_exports

if TYPE_CHECKING:
    from threadmark.app.sse.framing import HEARTBEAT, frame
    from threadmark.app.sse.live_response import LiveResponse
else:
    __getattr__, __dir__ = lazy_exports(__name__, __file__)

__all__ = ["HEARTBEAT", "LiveResponse", "frame"]
