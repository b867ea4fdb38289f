"""What the application is built from. Whoever opened these closes them, after the application has ended."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry

from state import Database
from workers.settings import Settings

__all__ = ["Resources"]


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What the application needs and does not make.

    Attributes:
        settings: As read at the start.
        database: The state database, migrated; API keys live there too.
        clock: The present, an aware UTC instant.
        monotonic: Seconds that never step back.
        registry: Where metrics are counted; one per application.
        stopping: Set when the server is told to stop: streams end then, instead of holding the stop up.
    """

    settings: Settings
    database: Database
    clock: Callable[[], datetime] = _now
    monotonic: Callable[[], float] = time.monotonic
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
