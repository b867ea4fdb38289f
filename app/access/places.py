"""Places: how much of something the tenants of this process have at once."""

import asyncio
from collections import Counter

from threadmark.state import BoundReached

__all__ = ["Place", "Places"]


class Place:
    """One of a tenant's places. Given back by `release`, at the end of a `with`, or with the task that took it."""

    def __init__(self, taken: "Counter[str]", tenant_id: str) -> None:
        self._taken, self._tenant_id = taken, tenant_id
        self._is_held = True

    def release(self) -> None:
        """Give the place back. Doing so again changes nothing."""
        if self._is_held:
            self._is_held = False
            self._taken[self._tenant_id] -= 1
            if not self._taken[self._tenant_id]:
                del self._taken[self._tenant_id]

    def __enter__(self) -> "Place":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class Places:
    """The places that tenants have taken, of one kind.

    `bound` is the name of the bound for one tenant, `whole_bound` that for all of them together.
    """

    def __init__(self, bound: str, whole_bound: str | None = None, *, retry_after_s: float) -> None:
        self._bound, self._whole_bound = bound, whole_bound
        self._retry_after_s = retry_after_s
        self._taken: Counter[str] = Counter()

    def take(self, tenant_id: str, *, count_max: int, whole_count_max: int | None = None) -> Place:
        """A place for the tenant. Raises BoundReached where it has `count_max`, or all have `whole_count_max`."""
        if self._taken[tenant_id] >= count_max:
            raise BoundReached(self._bound, count_max, self._retry_after_s)
        if whole_count_max is not None and self._taken.total() >= whole_count_max:
            raise BoundReached(self._whole_bound or self._bound, whole_count_max, self._retry_after_s)
        self._taken[tenant_id] += 1
        place = Place(self._taken, tenant_id)
        task = asyncio.current_task()
        if task is not None:
            # A request that is cancelled between two steps of its own leaves nothing taken.
            task.add_done_callback(lambda _: place.release())
        return place
