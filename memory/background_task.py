"""A background task of an owner that has no supervisor: no error ends it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

__all__ = ["BackgroundTask"]

_LOG = logging.getLogger("threadmark.memory")


class BackgroundTask:
    """Runs `body`, and again after every error and a `rest`; `body` calls what it is given after each good round."""

    def __init__(
        self, name: str, body: Callable[[Callable[[], None]], Awaitable[None]], rest: Callable[[], Awaitable[None]]
    ) -> None:
        self._name, self._body, self._rest = name, body, rest
        self._said = ""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, unless it runs already."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name=self._name)

    async def stop(self) -> None:
        """End it, and wait until it has ended."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self) -> None:
        while True:
            try:
                await self._body(self._worked)
            except Exception as error:
                # Once, and not twice a second for as long as it lasts.
                if str(error) != self._said:
                    self._said = str(error)
                    _LOG.warning("%s failed and will be tried again", self._name, exc_info=True)
            await self._rest()

    def _worked(self) -> None:
        self._said = ""
