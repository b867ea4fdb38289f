"""Tasks that are looked at, counted and, once they are over, forgotten."""

from functools import partial
from typing import Any

from tests.conformance.store import Store
from tests.conformance.tasking import BROKEN, SOON_US, added, claimed, held
from tests.support.factories import TENANT
from threadmark.state.tasks.task_claims import fail_task, finish_task
from threadmark.state.tasks.tasks import KEEP_S, count_tasks, list_tasks, prune_tasks


async def test_tasks_are_listed_newest_first_page_by_page(store: Store) -> None:
    """Forward and backward, by tenant, kind and status; and counted."""
    tasks = [await added(store, f"{number}") for number in range(5)]
    await added(store, tenant_id="other")
    await claimed(store, count_max=2)
    numbers = [each.number for each in tasks]

    async def page(**query: Any) -> list[int]:
        return [each.number for each in await store.read(partial(list_tasks, tenant_id=TENANT, count_max=2, **query))]

    assert await page() == [numbers[4], numbers[3]]
    assert await page(around=numbers[3]) == [numbers[2], numbers[1]]
    assert await page(around=numbers[1], backward=True) == [numbers[2], numbers[3]]
    assert await page(status="running") == [numbers[1], numbers[0]]
    assert await page(kind="paint") == []
    counts = {(each.kind, each.status): each.count for each in await store.read(count_tasks)}
    assert counts == {("mend", "pending"): 4, ("mend", "running"): 2}


async def test_what_is_over_is_forgotten_in_time_and_failures_are_not(store: Store) -> None:
    """A task that nobody looked at stays until somebody does."""
    for key in ("done", "failed"):
        await added(store, key)
    done, failed = await claimed(store)
    await store.write(partial(finish_task, held=held(done), result=None))
    await store.write(partial(fail_task, held=held(failed), failure=BROKEN, retry_in_us=None))
    assert await store.write(lambda connection: prune_tasks(connection, store.now_us(), 9)) == 0

    later_us = store.now_us() + KEEP_S * 1_000_000 + SOON_US
    assert await store.write(lambda connection: prune_tasks(connection, later_us, 9)) == 1

    assert [each.key for each in await store.read(partial(list_tasks, count_max=9))] == ["failed"]
