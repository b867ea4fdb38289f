"""Asking the outside world what became of a step in doubt, by the verifier of its tool."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from threadmark.state import Failure, Refused, Run, Wait, idempotency_key_of, spell
from threadmark.workers.agents.agent import ChatAgent
from threadmark.workers.agents.tool_context import ToolContext
from threadmark.workers.agents.tools import Verdict
from threadmark.workers.turn.step_execution import failure_of

__all__ = ["Finding", "verify_step"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a verifier found; a `failure` is why it found nothing. `result` is spelled (see
    `threadmark.state.entries.value`).
    """

    outcome: Literal["happened", "did_not_happen", "unknown"]
    result: Any = None
    failure: Failure | None = None

    def resolution(self) -> dict[str, Any] | None:
        """What settles the step; None leaves it in doubt."""
        match self.outcome:
            case "happened":
                return {"outcome": "happened", "result": self.result}
            case "did_not_happen":
                return {"outcome": "did_not_happen"}
            case "unknown":
                return None


async def verify_step(
    agent: ChatAgent, run: Run, wait: Wait, attempt: int, *, data_dir: Path, now: Callable[[], datetime]
) -> Finding:
    """Ask what became of attempt `attempt` of the step that `wait` asks about; nothing is recorded.

    The verifier gets the arguments as they were sent, whatever today's parameters are. Raises Refused where the tool
    has no verifier, or is no tool of the agent any more.
    """
    tool = agent.tool(wait.tool)
    if tool is None:
        raise Refused(
            f"Tool {wait.tool!r} is gone: agent {agent.name!r} does not have it any more;"
            " say happened or did_not_happen."
        )
    if tool.verify is None:
        raise Refused(f"Tool {wait.tool!r} of agent {agent.name!r} has no verifier; say happened or did_not_happen.")
    context = ToolContext(
        thread_id=run.thread_id,
        run_id=run.run_id,
        step_key=wait.step_key,
        idempotency_key=idempotency_key_of(wait.execution_id, wait.step_key),
        attempt=attempt,
        data_dir=data_dir,
        emit=_ignore,
        now=now,
    )
    try:
        async with asyncio.timeout(tool.timeout_s):
            found = await tool.verify(wait.arguments, context)
        return _finding(found)
    except Exception as error:
        # Whatever a verifier raises, nothing is known: the step stays in doubt, and the answer says why.
        return Finding(outcome="unknown", failure=failure_of(error))


def _finding(found: Any) -> Finding:
    if found is Verdict.DID_NOT_HAPPEN:
        return Finding(outcome="did_not_happen")
    if found is Verdict.UNKNOWN:
        return Finding(outcome="unknown")
    return Finding(outcome="happened", result=spell(found, "result"))


def _ignore(_event: Any) -> None:
    """A verifier has no stream: its events are dropped."""
