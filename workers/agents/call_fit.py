"""Whether a call that waits for a person still fits its agent: a deploy may have changed the tool meanwhile."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from sqlalchemy import Connection

from threadmark.state import AnswerCheck, AskedWait, CallOutdated, Wait, run_by_number
from threadmark.workers.agents.agent import ChatAgent, Registry
from threadmark.workers.agents.tools import BadArguments

__all__ = ["Misfit", "answer_check", "approves", "misfit_of_call", "misfit_of_wait"]


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a call cannot be made as it was asked about."""

    kind: Literal["tool_gone", "arguments_invalid", "effect_changed"]
    why: str  #: a sentence


def misfit_of_call(
    agent: ChatAgent, name: str, arguments: Mapping[str, Any], asked_effect: str | None
) -> Misfit | None:
    """Why the agent cannot make the call; None where it can. Nothing is said of an effect that is not known."""
    tool = agent.tool(name)
    if tool is None:
        return Misfit("tool_gone", f"Agent {agent.name!r} has no tool {name!r} any more.")
    try:
        tool.arguments(arguments)
    except BadArguments as error:
        return Misfit("arguments_invalid", f"Its arguments do not fit the tool any more: {error}.")
    if asked_effect is not None and asked_effect != tool.effect:
        return Misfit(
            "effect_changed",
            f"Tool {tool.name!r} was {asked_effect!r} when it was asked and is {str(tool.effect)!r} now.",
        )
    return None


def misfit_of_wait(registry: Registry, asked: AskedWait) -> Misfit | None:
    """Why the call of a question cannot be made; None where it can, or where only another server can tell."""
    agent = registry.find(asked.assistant)
    # The run goes to a worker that has the assistant, and this very version where that is pinned.
    if agent is None or asked.route not in agent.routes:
        return None
    wait = asked.wait
    return misfit_of_call(agent, wait.tool, wait.arguments, wait.effect if wait.kind == "approval" else None)


def approves(answer: Any) -> bool:
    """Whether the answer lets the call be made."""
    return answer is True or (isinstance(answer, dict) and answer.get("approve") is True)


def answer_check(registry: Registry) -> AnswerCheck:
    """The check of answers for a registry: an approval of a call that cannot be made raises CallOutdated."""

    def check(connection: Connection, wait: Wait, answer: Any) -> None:
        if not approves(answer):
            return
        run = run_by_number(connection, wait.run)
        if isinstance(answer, dict) and answer.get("effect") is not None:
            # A person who names the effect has seen it.
            wait = replace(wait, effect=answer["effect"])
        found = misfit_of_wait(registry, AskedWait(wait=wait, assistant=run.assistant, route=run.route))
        if found is not None:
            raise CallOutdated(wait.wait_id, found.why)

    return check
