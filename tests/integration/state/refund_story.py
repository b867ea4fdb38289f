"""The refund story, played by a person who never gives up, with a worker that may die at any point of it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.integration.state.mortality import Death, Fate
from tests.integration.state.stage import Stage
from tests.support.factories import Reply
from threadmark.examples.refund import refund_agent
from threadmark.examples.refund.effects import EFFECTS_FILE
from threadmark.state import ModelReplied, Run, RunStatus, StepKey, ToolReturned, idempotency_key_of

__all__ = ["STORY", "TOOLS", "Outcome", "play_story"]

TOOLS = refund_agent.tools
ORDER = {"order_id": "A1"}
STORY = [
    Reply("I look the order up.", [("lookup_order", ORDER)]),
    Reply(
        "I check and write.",
        [("check_policy", {**ORDER, "amount_cents": 4200}), ("email_customer", {**ORDER, "template": "soon"})],
    ),
    Reply("I pay.", [("refund", {**ORDER, "amount_cents": 4200})]),
    Reply("I confirm.", [("confirm", ORDER)]),
    Reply("All done."),
]
REFUND_STEP = StepKey("tool-3-0")
PAID = {"order_id": "A1", "amount_cents": 4200, "refunded": True}
#: Deaths, questions and doubts: a story that goes on for longer has lost its way.
SCENE_COUNT_MAX = 40


@dataclass
class Outcome:
    """What a story came to."""

    transcript: list[tuple[str, Any, Any]]
    #: The lines of the effects file: tool -> the keys under which it was reached, one for each time.
    effects: dict[str, list[str]] = field(default_factory=dict)
    results: list[ToolReturned] = field(default_factory=list)
    replies: list[ModelReplied] = field(default_factory=list)
    scene_count: int = 0


async def play_story(
    stage: Stage, *, interrupt: Callable[[Stage], Any] | None = None, fate: Fate | None = None
) -> Outcome:
    """Say it, approve it, settle every doubt by the effects file, and start a new worker after each death."""
    run = await stage.say("Please refund order A1.")
    for scene in range(SCENE_COUNT_MAX):
        seen = await stage.store.run(run)
        if seen.status is RunStatus.SUCCESS:
            waits = await stage.waits(run)
            if not waits:
                return await _outcome(stage, run, scene)
            run = await stage.answer(waits[0])
        elif seen.parked == "in_doubt":
            await stage.resolve(seen, _truth(stage.parts.data_dir, seen))
        else:
            await _turn(stage, interrupt, fate)
    raise AssertionError("the story never came to its end")


async def _turn(stage: Stage, interrupt: Callable[[Stage], Any] | None, fate: Fate | None) -> None:
    if fate is not None:
        fate.is_dead = False
    try:
        await (stage.play() if interrupt is None else interrupt(stage))
    except Death:
        return


def _truth(data_dir: Path, run: Run) -> Mapping[str, Any]:
    """What a person finds out about the payment in doubt."""
    key = idempotency_key_of(run.execution_id, REFUND_STEP)
    has_happened = key in _effects(data_dir).get("refund", [])
    return {"outcome": "happened", "result": PAID} if has_happened else {"outcome": "did_not_happen"}


async def _outcome(stage: Stage, run: Run, scene_count: int) -> Outcome:
    messages = await stage.messages(run)
    return Outcome(
        transcript=[
            (each.type, each.content, [(call.name, call.arguments) for call in each.tool_calls]) for each in messages
        ],
        effects=_effects(stage.parts.data_dir),
        results=await stage.entries_of(run, ToolReturned),
        replies=await stage.entries_of(run, ModelReplied),
        scene_count=scene_count,
    )


def _effects(data_dir: Path) -> dict[str, list[str]]:
    path, found = data_dir / EFFECTS_FILE, dict[str, list[str]]()
    if path.exists():
        for line in map(json.loads, path.read_text().splitlines()):
            found.setdefault(line["tool"], []).append(line["idempotency_key"])
    return found
