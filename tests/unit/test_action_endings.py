"""How a run ends before its work is done: budgets, pauses, cancellations, and runs that kill their workers."""

from typing import Any

import pytest

from tests.support.factories import Story, a_run, asked, human, replied, returned, started
from tests.support.next_actions import FAILURE, LATER_US, act, an_agent, intended, outcomes
from threadmark.state import (
    CancelAction,
    RunOutcome,
    RunRequest,
    RunStatus,
    StepFailed,
    StepKey,
    ThreadStatus,
    ToolReturned,
    Usage,
)
from threadmark.workers.agents.agent import ChatAgent
from threadmark.workers.agents.tools import Effect, tool
from threadmark.workers.turn.action import ORPHAN_COUNT_MAX, CallModel, Note, Perform, RollBack, Settle, next_action


@pytest.mark.parametrize(
    ("limits", "status", "reason"),
    [
        ({"step_count_max": 2}, RunStatus.ERROR, "steps"),
        ({"token_count_max": 15}, RunStatus.ERROR, "tokens"),
        ({"wall_time_s_max": 30}, RunStatus.TIMEOUT, "wall_time"),
    ],
)
def test_a_budget_that_is_used_up_ends_the_run_with_its_name(
    limits: dict[str, Any], status: RunStatus, reason: str
) -> None:
    """Whatever the run has left to do, it ends, and says why."""
    action = act(Story.begun(replied(asked()), returned("tool-1-0")), an_agent(**limits))

    assert isinstance(action, Settle)
    assert (action.outcome.status, action.outcome.thread_status, action.outcome.reason) == (
        status,
        ThreadStatus.ERROR,
        reason,
    )
    assert action.outcome.failure is not None
    assert action.outcome.failure.error == "BudgetExceeded"


def test_a_budget_that_is_used_up_by_the_last_reply_ends_nothing() -> None:
    """There is nothing left to do: the answer is there, and the run succeeds."""
    story = Story.begun(replied(usage=Usage(1000, 1000)))

    assert act(story, an_agent(step_count_max=1, token_count_max=1)) == Settle(RunOutcome(status=RunStatus.SUCCESS))


def test_a_caller_may_ask_for_fewer_steps_and_not_for_more() -> None:
    """The smaller of the agent's bound and the caller's counts."""
    story = Story.begun(replied(asked()), returned("tool-1-0"))
    few = RunRequest(step_count_max=2)
    many = RunRequest(step_count_max=1000)

    assert isinstance(act(story, request=few), Settle)
    assert isinstance(act(story, an_agent(step_count_max=2), request=many), Settle)
    assert isinstance(act(story, an_agent(step_count_max=3), request=many), CallModel)


def test_a_run_that_kills_its_workers_is_taken_out() -> None:
    """Its open calls get results first; an operator may let it go on."""
    story = Story.begun(replied(asked()))

    assert isinstance(act(story, orphaned=ORPHAN_COUNT_MAX), Perform)
    action = act(story, orphaned=ORPHAN_COUNT_MAX + 1)
    assert outcomes(action) == ["cancelled"]
    assert isinstance(action, Note)
    ending = act(story.tell(*action.entries), orphaned=ORPHAN_COUNT_MAX + 1)
    assert isinstance(ending, Settle)
    assert (ending.outcome.status, ending.outcome.reason) == (RunStatus.ERROR, "quarantined")


def test_a_cancelled_run_gives_every_open_call_a_result_and_ends() -> None:
    """Then the next model call is valid, in any later run (C37)."""
    story = Story.begun(replied(asked(call_id="c1"), asked("mail", "c2")), intended("tool-1-1", "keyed"))

    action = act(story, cancel=CancelAction.INTERRUPT)

    assert outcomes(action) == ["cancelled", "unknown"]
    assert isinstance(action, Note)
    ending = act(story.tell(*action.entries), cancel=CancelAction.INTERRUPT)
    assert ending == Settle(RunOutcome(status=RunStatus.INTERRUPTED, reason="cancelled"))


def ends(story: Story, agent: ChatAgent | None = None, begun: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """The outcome of each call that a cancellation closes, and the result that the model sees."""
    run = a_run(cancel=CancelAction.INTERRUPT)
    keys = [StepKey(key) for key in begun]
    action = next_action(story.state, agent or an_agent(), run, fence=story.fence, now_us=LATER_US, begun=keys)
    assert isinstance(action, Note)
    results = [entry for entry in action.entries if isinstance(entry, ToolReturned)]
    return [(each.outcome, each.failure.message if each.failure else "") for each in results]


@tool(effect=Effect.IDEMPOTENT)
async def store(order: str = "") -> str:
    """Store."""
    return order


UNKNOWN_END = ("unknown", "The call was interrupted; whether it took effect is unknown.")


def test_not_called_is_said_of_calls_that_never_began_alone() -> None:
    """An idempotent call leaves no intent: what this turn, or one that broke off, began of it may have happened."""
    agent = ChatAgent(name="chat", tools=[store])
    story = Story.begun(replied(asked("store")))

    assert ends(story, agent) == [("cancelled", "Not called: the run was stopped.")]
    assert ends(story, agent, ("tool-1-0",)) == [UNKNOWN_END]
    assert ends(story.next_turn(), agent) == [UNKNOWN_END]


def test_a_call_that_changes_nothing_or_has_failed_is_not_called_again() -> None:
    """It was called, so nothing else is said; and there is nothing that could have happened."""
    again = [("cancelled", "Not called again: the run was stopped.")]
    story = Story.begun(replied(asked("look")))
    failed = StepFailed(step_key=StepKey("tool-1-0"), attempt=1, failure=FAILURE, retry_at_us=LATER_US + 1)

    assert ends(story, begun=("tool-1-0",)) == again
    assert ends(story.tell(failed)) == again
    paid = Story.begun(replied(asked("pay")), intended(), failed)
    assert ends(paid) == again


def test_a_call_that_waits_for_its_approval_never_began() -> None:
    """However many turns went by."""
    story = Story.begun(replied(asked("peek"))).next_turn()

    assert ends(story) == [("cancelled", "Not called: the run was stopped.")]


def test_a_rollback_comes_before_everything_else() -> None:
    """Budgets, pauses and open calls do not matter to a run that is undone."""
    story = Story.begun(replied(asked()))

    assert act(story, an_agent(step_count_max=1), cancel=CancelAction.ROLLBACK, orphaned=99) == RollBack()


@pytest.mark.parametrize(
    ("request_", "story", "paused_at"),
    [
        (RunRequest(interrupt_before=("model",)), Story.begun(), "model"),
        (RunRequest(interrupt_before=("*",)), Story.begun(), "model"),
        (RunRequest(interrupt_before=("tools",)), Story.begun(), None),
        (RunRequest(interrupt_before=("tools",)), Story.begun(replied(asked())), "tools"),
        (RunRequest(interrupt_after=("model",)), Story.begun(), None),
        (RunRequest(interrupt_after=("model",)), Story.begun(replied(asked())), "tools"),
        (RunRequest(interrupt_after=("*",)), Story.begun(replied(asked())), "tools"),
        (RunRequest(interrupt_after=("tools",)), Story.begun(replied(asked())), None),
        (RunRequest(interrupt_after=("tools",)), Story.begun(replied(asked()), returned("tool-1-0")), "model"),
    ],
)
def test_a_run_pauses_where_its_caller_asked(request_: RunRequest, story: Story, paused_at: str | None) -> None:
    """The run ends well, the thread is interrupted, and the node to come is named."""
    action = act(story, request=request_)

    if paused_at is None:
        assert not isinstance(action, Settle)
    else:
        assert isinstance(action, Settle)
        assert (action.outcome.status, action.outcome.thread_status) == (RunStatus.SUCCESS, ThreadStatus.INTERRUPTED)
        assert action.paused_at == paused_at


def test_a_run_that_goes_on_from_a_pause_passes_it_once() -> None:
    """It does not stop where it stands; it stops again at the next such place."""
    request = RunRequest(interrupt_before=("tools",))
    story = Story.begun(replied(asked()))
    story.run = 2
    story.tell(started(run_id="run-2", source="continue"))

    assert isinstance(act(story, request=request, number=2), Perform)
    story.tell(returned("tool-1-0"), replied(asked(call_id="c2"), ordinal=2))
    assert isinstance(act(story, request=request, number=2), Settle)


def test_a_batch_that_has_begun_is_not_paused_in_the_middle() -> None:
    """After a crash in the middle of tools the run goes on with them: the pause was before."""
    story = Story.begun(replied(asked(call_id="c1"), asked(call_id="c2")), returned("tool-1-0", call_id="c1"))

    assert isinstance(act(story, request=RunRequest(interrupt_before=("tools",))), Perform)


def test_an_earlier_run_of_the_thread_does_not_pause_this_one() -> None:
    """`interrupt_after` is about nodes that this run has finished."""
    story = Story.begun(replied())
    story.run = 2
    story.tell(started(human("more", "h2"), run_id="run-2", execution_id="execution-2"))

    action = act(story, request=RunRequest(interrupt_after=("model",)), number=2)

    assert isinstance(action, CallModel)


def test_a_pause_after_a_node_is_for_what_this_run_finished() -> None:
    """A node that an earlier run finished, in another piece of work, does not stop the run that goes on from there."""
    story = Story.begun(replied(asked()), returned("tool-1-0"))
    asks = RunRequest(interrupt_after=("tools",))
    assert isinstance(act(story, request=asks), Settle)

    story.run = 2
    story.tell(started(run_id="run-2", execution_id="execution-2", source="continue"))

    assert isinstance(act(story, request=asks, number=2), CallModel)
