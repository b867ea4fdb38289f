"""Answers that stay open: a run's events as they come, and results that are waited for."""

from app.sse.framing import HEARTBEAT, frame
from app.sse.live import LiveResponse
from app.sse.tail import follow

__all__ = ["HEARTBEAT", "LiveResponse", "follow", "frame"]
