"""Seats: how much of something the tenants of this process have at once."""

import asyncio
from collections import Counter

from threadmark.state import BoundReached

__all__ = ["Seat", "Seats"]


class Seat:
    """One of a tenant's seats. Released by `release`, at the end of a `with`, or with the task that took it."""

    def __init__(self, taken: "Counter[str]", tenant_id: str) -> None:
        self._taken, self._tenant_id = taken, tenant_id
        self._is_held, self._is_kept = True, False

    @classmethod
    def nowhere(cls) -> "Seat":
        """One that takes no seat from anybody."""
        return cls(Counter({"": 1}), "")

    def release(self) -> None:
        """Give the seat back. Doing so again changes nothing."""
        if self._is_held:
            self._is_held = False
            self._taken[self._tenant_id] -= 1
            if not self._taken[self._tenant_id]:
                del self._taken[self._tenant_id]

    def kept(self) -> "Seat":
        """Itself, which the end of a `with` does not release any more: the receiver has to."""
        self._is_kept = True
        return self

    def __enter__(self) -> "Seat":
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_kept:
            self.release()


class Seats:
    """The seats that tenants have taken, of one kind.

    `bound` is the name of the bound for one tenant, `whole_bound` that for all of them together.
    """

    def __init__(self, bound: str, whole_bound: str | None = None, *, retry_after_s: float) -> None:
        self._bound, self._whole_bound = bound, whole_bound
        self._retry_after_s = retry_after_s
        self._taken: Counter[str] = Counter()

    def take(self, tenant_id: str, *, count_max: int, whole_count_max: int | None = None) -> Seat:
        """A seat for the tenant. Raises BoundReached where it has `count_max`, or all have `whole_count_max`."""
        if self._taken[tenant_id] >= count_max:
            raise BoundReached(self._bound, count_max, self._retry_after_s)
        if whole_count_max is not None and self._taken.total() >= whole_count_max:
            raise BoundReached(self._whole_bound or self._bound, whole_count_max, self._retry_after_s)
        self._taken[tenant_id] += 1
        seat = Seat(self._taken, tenant_id)
        task = asyncio.current_task()
        if task is not None:
            # A request that is cancelled between two steps of its own leaves nothing taken.
            task.add_done_callback(lambda _: seat.release())
        return seat
