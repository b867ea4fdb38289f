"""The fold of what the journal says of views: it is remembered, and nothing else changes."""

from tests.support.factories import Story, asked, replied
from threadmark.state import ToolCall, ViewChanged


def test_a_change_of_the_view_changes_nothing_else() -> None:
    """The state goes on from where it stood, with its open calls; only what the journal says of the view is another."""
    calls: tuple[ToolCall, ...] = (asked(), asked("look", "call-2"))
    before = Story.begun(replied(*calls))
    was = before.state.snapshot()
    state = before.tell(ViewChanged(view_id="view-2", version=2, act="compacted")).state

    assert (was.view_id, state.view_id, state.seq) == (None, "view-2", was.seq + 1)
    was.seq, was.view_id = state.seq, state.view_id
    assert state == was
