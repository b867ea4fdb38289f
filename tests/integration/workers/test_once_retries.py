"""A `once` tool that says when to come back is attempted again, turn after turn, and is never in doubt."""

from pathlib import Path

from tests.support.waiting import wait_until
from threadmark.state import (
    Message,
    RunRequest,
    RunStatus,
    RunSubmission,
    StepFailed,
    StepIntended,
    ToolReturned,
    accept,
    get_run,
)
from threadmark.workers.agents.agent import ChatAgent, Registry
from threadmark.workers.agents.tool_context import ToolContext
from threadmark.workers.agents.tools import Effect, RetryAfter, RetryPolicy, tool
from threadmark.workers.migration import migrate_state
from threadmark.workers.settings.settings import Settings
from threadmark.workers.wiring import open_resources

ATTEMPTS: list[int] = []
FAILURE_COUNT = 2


@tool(effect=Effect.ONCE, retry=RetryPolicy(first_delay_s=0.01))
async def pay(context: ToolContext) -> str:
    """Be asked to come back twice, before anything is paid."""
    ATTEMPTS.append(context.attempt)
    if len(ATTEMPTS) <= FAILURE_COUNT:
        # Longer than nothing, so that the run parks and another turn, under another fence, makes the next attempt.
        raise RetryAfter(0.01)
    return "paid"


registry = Registry([ChatAgent(name="payer", tools=[pay])])


async def test_a_once_tool_that_asked_for_time_is_attempted_again(tmp_path: Path) -> None:
    """RetryAfter says that nothing happened: each attempt has an intent and a number of its own; nobody is asked."""
    ATTEMPTS.clear()
    environment = {"THREADMARK_DATA_DIR": str(tmp_path), "THREADMARK_AGENTS": f"{__name__}:registry"}
    settings = Settings.from_environment(environment)
    migrate_state(settings)
    said = Message(id="message-1", type="human", content="call pay")
    submission = RunSubmission(
        tenant_id="default",
        thread_id=None,
        assistant="payer",
        assistant_id="payer",
        metadata={},
        request=RunRequest(messages=(said,)),
    )
    async with open_resources(settings, with_worker=True) as resources:
        run = (
            await resources.database.write(lambda connection: accept(connection, submission, resources.now_us()))
        ).run
        assert run is not None
        assert resources.worker is not None
        resources.worker.notify()

        async def has_ended() -> bool:
            found = await resources.database.read(lambda connection: get_run(connection, "default", run.run_id))
            return found.status is RunStatus.SUCCESS

        await wait_until(has_ended, description="the run's success")
        entries = [each.entry for each in await resources.journal.read(run.thread)]

    assert ATTEMPTS == [1, 2, 3]
    assert sum(isinstance(each, StepIntended) for each in entries) == FAILURE_COUNT + 1
    assert [each.attempt for each in entries if isinstance(each, StepFailed)] == [1, 2]
    assert [each.value for each in entries if isinstance(each, ToolReturned)] == ["paid"]
