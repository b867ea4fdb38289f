"""Questions to people: which answers an approval takes."""

from typing import Any

import pytest

from threadmark.app.http.body_errors import BodyRefused
from threadmark.app.wire.conversations.interrupt_schema import interrupt_of_call, read_approval
from threadmark.state import Call, StepKey, ToolCall


@pytest.mark.parametrize("value", [True, False, {"approve": True}, {"approve": False, "reason": "too much"}])
def test_yes_and_no_are_answers(value: Any) -> None:
    """With a reason if there is one."""
    assert read_approval(value, "$.answer") == value


@pytest.mark.parametrize(
    "value", [None, 1, "yes", [], {}, {"approve": 1}, {"approve": True, "why": ""}, {"reason": "x"}]
)
def test_anything_else_is_no_answer(value: Any) -> None:
    """A word that a person might mean as yes is not taken for one."""
    with pytest.raises(BodyRefused):
        read_approval(value, "$.answer")


def test_a_call_that_nobody_is_asked_about_is_no_interrupt() -> None:
    """An interrupt has a question."""
    with pytest.raises(ValueError, match="has no open question"):
        interrupt_of_call(Call(step_key=StepKey("tool-1-0"), call=ToolCall(id="c", name="add", arguments={})))
