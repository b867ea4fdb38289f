"""The supervisor: what it does with a loop that fails, hangs, or ends unasked."""

import asyncio
import logging
import threading

import pytest

from tests.support.waiting import wait_until
from threadmark.app.operations.process_exit import unless, until_ended
from threadmark.app.operations.worker_health import health_of
from threadmark.workers import supervisor as supervising
from threadmark.workers.supervisor import Loop, Supervisor


class Clock:
    """A clock that the test moves."""

    now_s = 100.0

    def __call__(self) -> float:
        """The present."""
        return self.now_s


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first attempt after an error comes at once."""
    monkeypatch.setattr(supervising, "FIRST_DELAY_S", 0.001)


async def test_a_loop_that_fails_is_logged_counted_and_started_again(caplog: pytest.LogCaptureFixture) -> None:
    """As often as it fails; once it completes a round the log says that it works again."""
    supervisor, started = Supervisor(), 0

    async def body(loop: Loop) -> None:
        nonlocal started
        started += 1
        if started <= 3:
            raise ValueError("a bad day")
        loop.completed()
        await asyncio.Event().wait()

    loop = supervisor.start("feed", body)
    await wait_until(lambda: loop.round_count, description="a round")

    (report,) = supervisor.reports()
    assert (report.error_count, report.round_count) == (3, 1)
    said = [each.message for each in caplog.records if each.name == "threadmark.supervisor"]
    assert [each.split(" and ")[0] for each in said] == ["feed failed", "feed works again"]
    assert "a bad day" in said[0]
    assert supervisor.failure is None
    await supervisor.stop(loop)
    assert supervisor.reports() == []


def test_attempts_come_later_and_later_up_to_a_bound() -> None:
    """And at once again after a round that ended well."""
    loop = Loop("sweep", Clock(), stale_s=None, delay_s_max=1.0)

    delays = [loop.failed(OSError()) for _ in range(12)]
    loop.completed()

    assert delays[:3] == [0.001, 0.002, 0.004]
    assert delays == sorted(delays)
    assert delays[-1] == 1.0
    assert loop.failed(OSError()) == 0.001


async def test_a_cancellation_from_inside_is_an_error_like_any_other() -> None:
    """Something that the loop awaited was cancelled; nobody asked the loop to end."""
    supervisor, started = Supervisor(), 0

    async def body(loop: Loop) -> None:
        nonlocal started
        started += 1
        if started == 1:
            raise asyncio.CancelledError
        loop.completed()
        await asyncio.Event().wait()

    loop = supervisor.start("feed", body)
    await wait_until(lambda: loop.round_count, description="a round")

    assert (loop.error_count, supervisor.failure) == (1, None)
    await supervisor.stop(loop)


@pytest.mark.parametrize("how", ["returns", "is cancelled"])
async def test_a_loop_that_ends_unasked_ends_the_process(how: str) -> None:
    """With an exit code that is not 0; until then the process is not ready and says why."""
    supervisor = Supervisor()

    async def body(_loop: Loop) -> None:
        if how == "is cancelled":
            await asyncio.Event().wait()

    supervisor.start("sweep", body)
    await asyncio.sleep(0)
    for task in asyncio.all_tasks():
        if task.get_name() == "sweep":
            task.cancel()

    assert await until_ended(asyncio.Event(), supervisor) == 1
    assert supervisor.troubles() == ["sweep has ended"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_thread_that_ends_by_an_error_ends_the_process() -> None:
    """A writer whose thread is gone would leave every write waiting."""
    supervisor = Supervisor()
    ending = asyncio.create_task(until_ended(asyncio.Event(), supervisor))
    await asyncio.sleep(0)

    def breaks() -> None:
        raise MemoryError

    threading.Thread(target=breaks, name="writer").start()

    assert await ending == 1
    assert supervisor.failure == "writer"


async def test_a_loop_that_was_asked_to_stop_is_no_failure() -> None:
    """Whether it returns by itself or is cancelled, also in the middle of a back-off."""
    supervisor, stopping = Supervisor(), asyncio.Event()

    async def returns(_loop: Loop) -> None:
        await stopping.wait()

    async def hangs(_loop: Loop) -> None:
        await asyncio.Event().wait()

    async def fails(_loop: Loop) -> None:
        raise OSError

    loops = [supervisor.start(body.__name__, body) for body in (returns, hangs, fails)]
    await asyncio.sleep(0.01)
    stopping.set()
    await supervisor.stop(*loops, patience_s=0.05)

    assert supervisor.failure is None
    assert [each for each in asyncio.all_tasks() if each.get_name() in ("returns", "hangs", "fails")] == []


async def test_a_loop_that_is_about_to_be_stopped_may_end_first() -> None:
    """A stop takes its turn with several loops; one that has seen the flag by then has not ended unasked."""
    supervisor, is_over = Supervisor(), asyncio.Event()

    async def body(_: Loop) -> None:
        await is_over.wait()

    loop = supervisor.start("sweep", body)
    supervisor.dismiss(loop)
    is_over.set()
    await wait_until(supervisor._tasks[loop].done, description="its end")
    await supervisor.stop(loop)

    assert supervisor.failure is None


async def test_a_loop_without_a_round_for_too_long_is_stale() -> None:
    """The bound counts from the start, and then from each round; one without a bound waits for events."""
    clock = Clock()
    supervisor = Supervisor(clock)
    sweep, feed = supervisor.watch("sweep", stale_s=5.0), supervisor.watch("feed")
    clock.now_s += 6
    assert supervisor.troubles() == ["sweep has completed no round yet"]

    sweep.completed()
    feed.completed()
    assert supervisor.troubles() == []
    clock.now_s += 60

    assert supervisor.troubles() == ["sweep has completed no round for 60 s"]


async def test_a_worker_process_answers_its_probes() -> None:
    """Listening, ready with reasons, and the figures of its loops."""
    clock = Clock()
    supervisor = Supervisor(clock)
    supervisor.watch("sweep", stale_s=5.0).failed(OSError("no route"))
    sent: list[dict[str, object]] = []

    async def send(message: object) -> None:
        assert isinstance(message, dict)
        sent.append(message)

    async def ask(path: str) -> tuple[object, bytes]:
        sent.clear()

        async def receive() -> dict[str, object]:
            return {}

        await health_of(supervisor)({"type": "http", "method": "GET", "path": path}, receive, send)
        body = sent[1]["body"]
        assert isinstance(body, bytes)
        return sent[0]["status"], body

    assert await ask("/ready") == (200, b'{"ready":true,"reasons":[]}')
    clock.now_s += 6
    assert (await ask("/ready"))[0] == 503
    assert (await ask("/ok"))[0] == 200
    assert (await ask("/elsewhere"))[0] == 404
    status, figures = await ask("/metrics")
    assert status == 200
    assert b'threadmark_loop_errors_total{loop="sweep"} 1.0' in figures
    assert b'threadmark_loop_stale{loop="sweep"} 1.0' in figures


async def test_a_waiting_start_ends_on_a_stop() -> None:
    """A database that is away at the start holds no stop up; what the start raises is raised."""
    stopping = asyncio.Event()

    async def never() -> int:
        await asyncio.Event().wait()
        return 1

    async def fails() -> int:
        raise LookupError

    waiting = asyncio.create_task(unless(stopping, never()))
    with pytest.raises(LookupError):
        await unless(stopping, fails())
    stopping.set()

    assert await waiting is None


def test_the_log_of_an_outage_is_a_line(caplog: pytest.LogCaptureFixture) -> None:
    """The same error is not said again with every attempt."""
    loop = Loop("sweep", Clock(), stale_s=None)
    with caplog.at_level(logging.ERROR):
        for _ in range(5):
            loop.failed(OSError("no route to host"))

    assert len(caplog.records) == 1
