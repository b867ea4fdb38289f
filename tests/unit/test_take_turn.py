"""The job: it hands one run id to the worker of its process, and nothing else ever comes of it."""

from typing import Any, cast

import pytest
from arq import Retry

from threadmark.workers.redis.arq_jobs import ATTEMPT_MAX, take_turn

RUN_ID = "01a22812-7193-7bcd-8304-da4549f015ef"


class Hands:
    """Stands in for a worker: writes down what it is to take."""

    def __init__(self, *, has_room: bool = True) -> None:
        self.has_room = has_room
        self.asked: list[str] = []

    async def take(self, run_id: str) -> bool:
        """As a worker."""
        self.asked.append(run_id)
        return self.has_room


async def do_job(hands: Hands, *arguments: object, job_try: int = 1, **options: object) -> None:
    """What arq does with a job's arguments, whatever wrote them."""
    await take_turn({"worker": hands, "job_try": job_try}, *cast(Any, arguments), **options)


async def test_a_job_is_one_run_to_take() -> None:
    """The id is all that a job carries; tenant, thread and agent are read from the database."""
    hands = Hands()

    await do_job(hands, RUN_ID)

    assert hands.asked == [RUN_ID]


@pytest.mark.parametrize(
    "arguments",
    [(), (None,), (7,), ("",), ("x' OR '1'='1",), (RUN_ID.upper(),), (RUN_ID + "\n",), ("a" * 10**6,), ([RUN_ID],)],
)
async def test_a_forged_argument_asks_for_nothing(arguments: tuple[object, ...]) -> None:
    """What is no run id never reaches the database."""
    hands = Hands()

    await do_job(hands, *arguments)

    assert hands.asked == []


async def test_further_arguments_mean_nothing() -> None:
    """A tenant beside the id would be somebody's word."""
    hands = Hands()

    await do_job(hands, RUN_ID, "other-tenant", tenant_id="other-tenant")

    assert hands.asked == [RUN_ID]


async def test_a_full_worker_passes_the_job_on_a_few_times() -> None:
    """Another worker may have room; after that the run is left to the sweep."""
    hands = Hands(has_room=False)

    for attempt in range(1, ATTEMPT_MAX):
        with pytest.raises(Retry):
            await do_job(hands, RUN_ID, job_try=attempt)
    await do_job(hands, RUN_ID, job_try=ATTEMPT_MAX)

    assert len(hands.asked) == ATTEMPT_MAX
