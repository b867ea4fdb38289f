"""Answers that stay open: a run's events as they come, and results that are waited for."""

from threadmark.app.sse.event_tail import follow
from threadmark.app.sse.framing import HEARTBEAT, frame
from threadmark.app.sse.live_response import LiveResponse

__all__ = ["HEARTBEAT", "LiveResponse", "follow", "frame"]
