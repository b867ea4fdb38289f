"""What this deployment promises: what is memoised, what a crash can lose, and how soon a failure is noticed."""

from typing import Literal

from litestar import get
from msgspec import Struct

from threadmark.app.access import Scope, needs
from threadmark.app.requests import dependencies
from threadmark.state import is_sqlite
from threadmark.workers.agents.agent import ChatAgent, assistant_id_of
from threadmark.workers.agents.tools import Effect, Tool
from threadmark.workers.settings.settings import Settings

__all__ = ["ROUTES", "Durability"]

_AFTER_CRASH = {
    Effect.PURE: "runs again",
    Effect.IDEMPOTENT: "runs again",
    Effect.KEYED: "runs again with the same idempotency key",
    Effect.ONCE: "never runs again by itself: the step is in doubt until its verifier or a person settles it",
}


class Mode(Struct):
    """A durability mode. `window_of_loss_s`: how much of what was acknowledged a crash can take, in seconds."""

    name: str
    meaning: str
    window_of_loss_s: float


class Noticed(Struct):
    """The longest time, in seconds, until a run whose worker is gone is claimable again.

    `after_death_s`: its process ended, in whatever way; `after_hang_s`: it lives and renews its lease no more;
    `after_stop_s`: it was stopped. Another worker, or the next start, has to notice it.
    """

    after_death_s: float
    after_hang_s: float
    after_stop_s: float


class Deployment(Struct):
    """How the server is set up."""

    mode: Literal["embedded", "cluster"]
    database: Literal["sqlite", "postgresql"]
    commit: str
    lease_ttl_s: float
    heartbeat_s: float
    sweep_s: float
    noticed_within: Noticed


class ToolPromise(Struct):
    """What a crash in the middle of a call of the tool comes to."""

    name: str
    effect: str
    after_crash: str
    has_verifier: bool
    needs_approval: bool
    timeout_s: float
    attempt_max: int | None


class AgentPromise(Struct):
    """What is memoised of an agent's runs: each unit is performed once and recorded once."""

    assistant_id: str
    name: str
    version: str
    kind: Literal["chat"]
    unit: str
    modes: list[Mode]
    default_mode: str
    tools: list[ToolPromise]


class Durability(Struct):
    """The promises of this deployment, and of each of its agents."""

    deployment: Deployment
    agents: list[AgentPromise]


@get("/durability", opt=needs(Scope.READ))
async def read_durability(resources: dependencies.Resources) -> Durability:
    """What survives a crash here, what does not, and how soon a failure is noticed."""
    return Durability(
        deployment=_deployment(resources.settings),
        agents=[_promise(agent) for agent in resources.wired.registry],
    )


def _deployment(settings: Settings) -> Deployment:
    embedded = is_sqlite(settings.state_database_url)
    return Deployment(
        mode="embedded" if embedded else "cluster",
        database="sqlite" if embedded else "postgresql",
        commit="WAL, synchronous=FULL: a commit is on disk before it is acknowledged"
        if embedded
        else "synchronous_commit as the server is set up: a commit is acknowledged by it",
        lease_ttl_s=settings.lease_ttl_s,
        heartbeat_s=settings.heartbeat_s,
        sweep_s=settings.sweep_s,
        noticed_within=Noticed(
            # The kernel, or the database, lets go of what a dead process held; a sweep sees that.
            after_death_s=settings.sweep_s,
            after_hang_s=settings.lease_ttl_s + settings.sweep_s,
            after_stop_s=0.0,
        ),
    )


def _promise(agent: ChatAgent) -> AgentPromise:
    return AgentPromise(
        assistant_id=assistant_id_of(agent.name),
        name=agent.name,
        version=agent.version,
        kind="chat",
        unit="step: each model call and each tool call; a recorded one never runs again",
        modes=[
            Mode(
                name="sync",
                meaning="an entry is on disk before the next step starts; a crash repeats the step that was under way",
                window_of_loss_s=0.0,
            )
        ],
        default_mode="sync",
        tools=[_tool(tool) for tool in agent.tools],
    )


def _tool(tool: Tool) -> ToolPromise:
    return ToolPromise(
        name=tool.name,
        effect=tool.effect,
        after_crash=_AFTER_CRASH[tool.effect],
        has_verifier=tool.verify is not None,
        needs_approval=tool.needs_approval,
        timeout_s=tool.timeout_s,
        attempt_max=tool.retry.attempt_max,
    )


ROUTES = [read_durability]
