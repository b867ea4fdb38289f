"""The recall of a run before its model answers: made once, journaled, and shown to the model as data."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from threadmark.memory import NOTICE, Answers, Question, Recollection, RecollectionError, block
from threadmark.state import Claim, Entry, Failure, Recalled, ThreadState
from threadmark.workers.agents.agent import ChatAgent
from threadmark.workers.agents.memory_json import answer_shown
from threadmark.workers.agents.memory_policy import MemoryPolicy, NoScope, scope_of
from threadmark.workers.turn.action import Recall

__all__ = ["instructions_of", "perform_recall", "recalled_block"]

_LOG = logging.getLogger("threadmark.memory")


def instructions_of(agent: ChatAgent) -> str:
    """The system text: the same whatever memory says, so that no memory can be part of it."""
    if agent.memory is None:
        return agent.instructions
    return f"{agent.instructions}\n\n{NOTICE}" if agent.instructions else NOTICE


def recalled_block(state: ThreadState) -> str:
    """What the model is shown beside the last message of a person: what was recalled for it, and nothing older."""
    recalled = state.recalled_now
    return "" if recalled is None else recalled.block


async def perform_recall(
    claim: Claim, agent: ChatAgent, action: Recall, *, recollection: Recollection | None, now: Callable[[], datetime]
) -> Sequence[Entry]:
    """Ask memory, for a bounded time. Whatever it does or fails to do becomes an entry: the run goes on."""
    policy = agent.memory
    if policy is None:
        raise ValueError("an agent without a policy recalls nothing")
    began = time.monotonic()
    asked: dict[str, Any] = {"text": action.question, "limit": policy.limit, "token_count_max": policy.token_count_max}
    try:
        question = _question(claim, policy, action, now())
        asked |= {"namespace": list(question.scope.namespace), "asked_at": question.asked_at.isoformat()}
        async with asyncio.timeout(policy.timeout_s):
            answers = await _memory_of(recollection).recall(question)
        outcome = _outcome_of(answers)
    except asyncio.CancelledError:
        raise
    except Exception as error:
        # Memory is no part of a run's durability: nothing that happens to it may end a run.
        if not isinstance(error, NoScope | RecollectionError | TimeoutError):
            _LOG.exception("memory failed a recall of run %s", claim.run.run_id)
        outcome = {"status": "unavailable", "failure": _failure_of(error, policy)}
    return [
        Recalled(
            step_key=action.step_key,
            message_id=action.message_id,
            question=asked,
            attempt=action.attempt,
            duration_us=round((time.monotonic() - began) * 1_000_000),
            **outcome,
        )
    ]


def _memory_of(recollection: Recollection | None) -> Recollection:
    if recollection is None:
        raise NoScope("this server has no memory")
    return recollection


def _question(claim: Claim, policy: MemoryPolicy, action: Recall, asked_at: datetime) -> Question:
    scope = scope_of(
        policy,
        tenant_id=claim.run.tenant_id,
        assistant=claim.run.assistant,
        thread_id=claim.thread.thread_id,
        metadata=claim.thread.metadata,
    )
    return Question(
        text=action.question,
        scope=scope,
        asked_at=asked_at,
        count_max=policy.limit,
        token_count_max=policy.token_count_max,
        thread_ref=claim.thread.thread_id,
        run_ref=claim.run.run_id,
    )


def _outcome_of(answers: Answers) -> dict[str, Any]:
    return {
        "recall_id": answers.recall_id,
        "answers": tuple(answer_shown(each) for each in answers.answers),
        "withheld": {str(reason): count for reason, count in answers.withheld.items()},
        "recipe": answers.recipe,
        "block": block(answers.answers),
    }


def _failure_of(error: Exception, policy: MemoryPolicy) -> Failure:
    if isinstance(error, TimeoutError):
        return Failure("TimedOut", f"memory did not answer within {policy.timeout_s:g} s")
    return Failure(type(error).__name__, str(error)[:1_000] or type(error).__name__)
