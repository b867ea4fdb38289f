"""Bounds of a tenant are counted under the lock of the acceptance: the last one fits, the next one does not."""

import pytest

from tests.conformance.store import Store
from threadmark.state import BoundReached
from threadmark.state.runs.run_bounds import RunBounds

LATER_US = 90_000_000


async def test_a_tenant_may_schedule_as_many_runs_as_its_bound_says(store: Store) -> None:
    """Those that are due do not count; the refusal names the bound, and the time until the first of them is due."""
    bounds = RunBounds(scheduled_runs=2)
    await store.accept("now", bounds=bounds)
    for _ in range(2):
        await store.accept("later", delay_us=LATER_US, bounds=bounds)

    with pytest.raises(BoundReached) as refused:
        await store.accept("later", delay_us=LATER_US, bounds=bounds)

    assert (refused.value.bound, refused.value.count_max) == ("scheduled_runs", 2)
    assert 0 < refused.value.retry_after_s <= LATER_US / 1_000_000
    assert (await store.accept("now", bounds=bounds)).status == "pending"
    assert (await store.accept("unbounded", delay_us=LATER_US)).status == "pending"
