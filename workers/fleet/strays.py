"""Strays: threads that are a worker's by the database and not by its own count.

A turn that broke off (the database was away, a defect) leaves its thread owned by a worker that lives, and a claim
whose answer was lost was never begun: no sweep of another worker would ever find either.
"""

from collections.abc import Callable, Collection
from functools import partial

from sqlalchemy import Connection

from threadmark.state import Database, Failure, Held, release
from threadmark.workers.turn.turn_failures import rest_us

__all__ = ["Strays"]


class Strays:
    """Gives back the strays of one worker, after something that may have left some."""

    def __init__(self, database: Database, *, delay_s: float) -> None:
        """A run that is released is due again after `delay_s` seconds."""
        self._database = database
        self._delay_us = round(delay_s * 1_000_000)
        self._broken: dict[tuple[int, int], Failure] = {}  #: by run and fence: what its turn broke off with
        self.may_exist = False

    def broke_off(self, run: int, fence: int, failure: Failure | None) -> None:
        """A turn of the run ended by an error; `failure` where the run is to blame for it."""
        self.may_exist = True
        if failure is not None:
            self._broken[run, fence] = failure

    async def release(self, held: Collection[Held], active: Collection[int]) -> None:
        """Let go of what is `held` by the database and whose run is not among the `active` ones."""
        for stray in held:
            if stray.run not in active:
                await self._database.write(self._returning(stray), repeatable=True)
        self._broken.clear()
        self.may_exist = False

    def _returning(self, stray: Held) -> Callable[[Connection], bool]:
        failure = self._broken.get((stray.run, stray.fence))
        return partial(release, held=stray, delay_us=self._delay_us, failure=failure, back_off=rest_us)
