"""The refund story with a death at every point of it, one at a time: the end is always the same (F01 to F05, F11)."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sqlalchemy import Connection

from tests.conformance.store import Store
from tests.integration.state.mortality import Fate, mortal
from tests.integration.state.refund_story import STORY, TOOLS, Outcome, play_story
from tests.integration.state.stage import Stage, open_stage
from tests.support.cancellation import cancelled_at
from threadmark.state.batches.append_batch import Append

ONE_OF_EACH = {tool.name: 1 for tool in TOOLS}


def differences(outcome: Outcome, undisturbed: Outcome) -> list[str]:
    """What a death has changed that it must not: empty when the story ended as it would have without."""
    found = []
    if outcome.transcript != undisturbed.transcript:
        found.append(f"the transcript is {outcome.transcript}")
    if len({each.step_key for each in outcome.results}) != len(outcome.results) or len(outcome.results) != len(TOOLS):
        found.append(f"the results are {[each.step_key for each in outcome.results]}")
    if len(outcome.replies) != len(STORY):
        found.append(f"{len(outcome.replies)} replies are recorded")
    for tool, keys in outcome.effects.items():
        if len(set(keys)) != 1:
            found.append(f"{tool} was reached under {len(set(keys))} keys")
        if len(keys) > (1 if tool == "refund" else 2):
            found.append(f"{tool} was reached {len(keys)} times")
    return found


def a_folder(parent: Path, name: str) -> Path:
    """An empty data directory."""
    (parent / name).mkdir()
    return parent / name


async def play_with(store: Store, data_dir: Path, fate: Fate) -> Outcome:
    """The story on a thread of its own, with a worker of this fate."""
    async with open_stage(store, data_dir, STORY) as stage:
        return await play_story(mortal(stage, fate, TOOLS), fate=fate)


@dataclass
class Interruption:
    """Takes turns, and cancels one of them (from 0) where it waits for the `nth` time."""

    turn: int
    nth: int
    turn_count: int = 0
    was_cancelled: bool = False

    async def __call__(self, stage: Stage) -> None:
        """Take the next turn."""
        taking = (await stage.turn()).take()
        self.turn_count += 1
        if self.turn_count == self.turn + 1:
            self.was_cancelled = await cancelled_at(taking, self.nth)
        else:
            await taking


async def test_a_death_at_any_point_changes_nothing(store: Store, tmp_path: Path) -> None:
    """Before and after each write, read, model call and tool call: same transcript, no step recorded twice, no
    payment made twice, one key for each effect, and a journal that verifies.
    """
    never = Fate()
    undisturbed = await play_with(store, a_folder(tmp_path, "undisturbed"), never)
    assert {tool: len(keys) for tool, keys in undisturbed.effects.items()} == ONE_OF_EACH

    harm = {}
    for at in range(1, never.count + 1):
        fate = Fate(at=at)
        outcome = await play_with(store, a_folder(tmp_path, str(at)), fate)
        if found := differences(outcome, undisturbed):
            harm[f"{at}, {fate.name}"] = found

    assert harm == {}
    assert never.count > 40


async def test_a_cancellation_at_any_await_changes_nothing(store: Store, tmp_path: Path) -> None:
    """The task of a turn is cancelled where it waits for the n-th time, in each of its turns in turn (C42, F11)."""
    undisturbed = await play_with(store, a_folder(tmp_path, "undisturbed"), Fate())
    harm = {}
    for turn in range(2):
        for nth in count(1):
            interruption = Interruption(turn, nth)
            async with open_stage(store, a_folder(tmp_path, f"{turn}-{nth}"), STORY) as stage:
                outcome = await play_story(mortal(stage, Fate(), TOOLS), interrupt=interruption)
            if found := differences(outcome, undisturbed):
                harm[f"turn {turn}, await {nth}"] = found
            if not interruption.was_cancelled:
                break

    assert harm == {}


async def test_a_commit_whose_answer_was_lost_is_not_done_twice(store: Store, tmp_path: Path) -> None:
    """Every append and every move is sent twice, as after a lost answer: the journal has each once (F14)."""

    append, write = store.database.append, store.database.write

    async def append_twice(appended: Append) -> int | None:
        await append(appended)
        return await append(appended)

    async def write_twice(unit: Callable[[Connection], Any], *, repeatable: bool = False, **options: Any) -> Any:
        if repeatable:
            await write(unit, repeatable=True, **options)
        return await write(unit, repeatable=repeatable, **options)

    with patch.multiple(store.database, append=append_twice, write=write_twice):
        outcome = await play_with(store, a_folder(tmp_path, "doubled"), Fate())

    assert {tool: len(keys) for tool, keys in outcome.effects.items()} == ONE_OF_EACH
    assert len(outcome.replies) == len(STORY)
