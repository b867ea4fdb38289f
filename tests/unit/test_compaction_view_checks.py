"""A view that is moved to is checked without rendering it, and nothing gets past that rendering would refuse."""

import pytest

from tests.support.compaction_threads import Thread, fuzzed_history, talk
from threadmark.compaction.errors import ViewBroken
from threadmark.compaction.model.policy import Policy
from threadmark.compaction.view import Item, Live, Masked, Pin, Summary, View, check_view, render


def broken_views(thread: Thread) -> list[View]:
    """Views of the thread: its own, and some that name what is there or is not."""
    last = thread.entries[-1].seq
    items: list[Item] = [Masked(1), Masked(last + 1), Summary("nothing", 1, 2), Pin(1, 0, 0, 1), Pin(1, 9, 0, 1)]
    items += [Pin(last + 1, 0, 0, 1), Pin(1, 0, 0, 1, 7), Live(last + 5), Live(3, 2)]
    return [thread.view, *(View(view_id="v", items=(Live(1), item)) for item in items)]


@pytest.mark.parametrize("seed", range(10))
async def test_a_check_refuses_what_cannot_be_rendered_and_nothing_else(seed: int) -> None:
    """A view is moved to without rendering it: the check has to say the same, in the same words."""
    thread = Thread(fuzzed_history(seed, 40) or talk(3, seed), Policy(keep_last_turns=1, min_gain=0.0))
    await thread.compact()
    seen = set()
    for view in broken_views(thread):
        errors = []
        for work in (render, check_view):
            try:
                work(view, thread.entries, thread.segments)
                errors.append("")
            except ViewBroken as error:
                errors.append(str(error))
        assert errors[0] == errors[1]
        seen.add(bool(errors[0]))
    assert seen == {True, False}
