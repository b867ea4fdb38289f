"""Requests for runs: what they mean, and that nothing is taken that would not be done."""

from itertools import count
from typing import Any

import msgspec
import pytest

from threadmark.app.http.body_errors import BodyRefused
from threadmark.app.http.path_ids import BadId
from threadmark.app.wire.conversations.run_request import AFTER_S_MAX, RunBody, RunSpec, StatelessRunBody, read_run_spec
from threadmark.state import Multitask

THREAD = "0b0c1e9a-3a7e-4d0b-9a52-1f2e3d4c5b6a"
CHECKPOINT = "01a22741-0000-8000-8000-000000000001"
OTHER = "01a22741-0000-8000-8000-000000000002"
WAIT = "5f1d3c1e-6a55-5a0e-9a3b-8d1f0c6e7a21"


def spec(stateless: bool = False, **body: Any) -> RunSpec:
    """What a body of these fields means."""
    kind = StatelessRunBody if stateless else RunBody
    numbers = count(1)
    read = msgspec.convert({"assistant_id": "chat", **body}, kind, strict=True)
    return read_run_spec(read, None if stateless else THREAD, lambda: f"new-{next(numbers)}")


def refused(stateless: bool = False, **body: Any) -> str:
    """The path that a body is refused for."""
    with pytest.raises(BodyRefused) as caught:
        spec(stateless, **body)
    return caught.value.path


def test_the_least_that_is_asked_for() -> None:
    """An assistant alone: go on with the thread, queue up, stream values, stop for nothing."""
    least = spec()

    assert (least.messages, least.resumes, least.modes) == ((), False, ("values",))
    assert (least.multitask, least.create_missing, least.cancel_on_disconnect) == (Multitask.ENQUEUE, False, False)
    assert (least.interrupt_before, least.interrupt_after, least.step_count_max, least.after_s) == ((), (), None, 0)
    assert (least.keeps_thread, spec(stateless=True).keeps_thread) == (True, False)
    assert spec(stateless=True, on_completion="keep").keeps_thread


@pytest.mark.parametrize("given", [None, {}, {"messages": []}])
def test_an_input_without_messages_is_none(given: Any) -> None:
    """Front ends send an empty object beside an answer; it says nothing."""
    assert spec(input=given, command={"resume": True}).messages == ()


def test_messages_are_read_and_named() -> None:
    """Those without an id get one here, so that a retried transaction writes the same."""
    said = spec(input={"messages": [{"role": "user", "content": "hi"}, {"type": "human", "content": "x", "id": "a"}]})

    assert [(message.id, message.content) for message in said.messages] == [("new-1", "hi"), ("a", "x")]


@pytest.mark.parametrize(
    "quiet",
    [
        {"context": None},
        {"context": {}},
        {"webhook": None},
        {"feedback_keys": []},
        {"langsmith_tracer": None},
        {"checkpoint_during": None},
        {"durability": "sync"},
        {"strict_resume": True},
        {"stream_subgraphs": True},
        {"on_completion": "keep"},
        {"config": {"configurable": {}}},
        {"config": {"configurable": {"thread_id": THREAD, "checkpoint_ns": "", "checkpoint_map": {}}}},
        {"checkpoint": {"thread_id": THREAD}},
        {"command": {"resume": True, "goto": []}},
        {"command": {"goto": [], "update": None, "graph": None}},
    ],
)
def test_what_asks_for_nothing_is_taken(quiet: dict[str, Any]) -> None:
    """Unmodified clients send defaults; they mean what leaving the field out means."""
    assert spec(**quiet).checkpoint_id is None


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ({"context": {"a": 1}}, "$.context"),
        ({"webhook": "https://x.invalid/"}, "$.webhook"),
        ({"feedback_keys": ["a"]}, "$.feedback_keys"),
        ({"langsmith_tracer": {"project_name": "x"}}, "$.langsmith_tracer"),
        ({"checkpoint_during": True}, "$.checkpoint_during"),
        ({"durability": "async"}, "$.durability"),
        ({"durability": "exit"}, "$.durability"),
        ({"strict_resume": False}, "$.strict_resume"),
        ({"on_completion": "delete"}, "$.on_completion"),
        ({"input": {"question": "?"}}, "$.input.question"),
        ({"input": {"messages": [{"role": "user"}]}}, "$.input.messages[0]"),
        ({"command": {"update": {"messages": []}}}, "$.command.update"),
        ({"command": {"goto": ["tools"]}}, "$.command.goto"),
        ({"command": {"resume": "yes"}}, "$.command.resume"),
        ({"command": {"resume": {}}}, "$.command.resume"),
        ({"command": {"resume": {"approve": 1}}}, "$.command.resume.approve"),
        ({"command": {"resume": {WAIT: "yes"}}}, f"$.command.resume.{WAIT}"),
        ({"command": {"resume": True}, "input": {"messages": "hi"}}, "$.input"),
        ({"config": {"configurable": {"user_id": "u"}}}, "$.config.configurable"),
        ({"config": {"configurable": {"thread_id": CHECKPOINT}}}, "$.config.configurable.thread_id"),
        ({"checkpoint": {"checkpoint_ns": "a|b"}}, "$.checkpoint.checkpoint_ns"),
        ({"checkpoint_id": CHECKPOINT, "checkpoint": {"checkpoint_id": OTHER}}, "$.checkpoint"),
    ],
)
def test_what_is_not_honoured_is_refused_with_its_place(field: dict[str, Any], path: str) -> None:
    """Silence would let the caller believe that it was done."""
    assert refused(**field) == path


@pytest.mark.parametrize(
    "field",
    [
        {"stream_mode": "debug"},
        {"stream_mode": ["values", "events"]},
        {"interrupt_before": ["agent"]},
        {"interrupt_after": "model"},
        {"multitask_strategy": "queue"},
        {"if_not_exists": "maybe"},
        {"on_disconnect": "wait"},
        {"after_seconds": -1},
        {"after_seconds": AFTER_S_MAX + 1},
        {"after_seconds": 1.5},
        {"config": {"recursion_limit": 0}},
        {"config": {"callbacks": []}},
        {"metadata": "x"},
        {"input": "hi"},
        {"unheard_of": None},
        {"tenant_id": "other"},
        {"command": {"resume": True, "tool": 1}},
        {"checkpoint": {"seq": 1}},
    ],
)
def test_another_shape_is_no_request(field: dict[str, Any]) -> None:
    """Unknown fields, unknown modes and nodes, numbers out of bounds."""
    with pytest.raises(msgspec.ValidationError):
        spec(**field)


@pytest.mark.parametrize(
    "answer", [True, False, {"approve": False, "reason": "too much"}, {WAIT: True}, {WAIT: {"approve": True}}]
)
def test_an_answer_is_kept_as_it_was_given(answer: Any) -> None:
    """One answer, or answers by interrupt id; false is an answer, too."""
    asked = spec(command={"resume": answer})

    assert (asked.resumes, asked.resume) == (True, answer)


def test_an_answer_to_no_interrupt_id_is_refused() -> None:
    """A key that is no id names no question."""
    with pytest.raises(BadId):
        spec(command={"resume": {"yes": True}})


@pytest.mark.parametrize(
    "place",
    [
        {"checkpoint_id": CHECKPOINT.upper()},
        {"checkpoint": {"checkpoint_id": CHECKPOINT, "checkpoint_ns": "", "thread_id": THREAD}},
        {"config": {"configurable": {"checkpoint_id": CHECKPOINT}}},
        {"checkpoint_id": CHECKPOINT, "checkpoint": {"checkpoint_id": CHECKPOINT}},
    ],
)
def test_a_checkpoint_is_named_in_any_of_three_places(place: dict[str, Any]) -> None:
    """SDKs differ; all of them mean the same."""
    assert spec(**place).checkpoint_id == CHECKPOINT


def test_the_rest_means_what_it_says() -> None:
    """Modes once each, pauses, metadata of both places, tags, the most steps."""
    asked = spec(
        stream_mode=["updates", "custom", "updates"],
        interrupt_before="*",
        interrupt_after=["tools", "model"],
        metadata={"a": 1},
        config={"metadata": {"a": 0, "b": 2}, "tags": ["x"], "recursion_limit": 9},
        after_seconds=3,
        if_not_exists="create",
        on_disconnect="cancel",
        multitask_strategy="rollback",
        stream_resumable=True,
    )

    assert (asked.modes, asked.interrupt_before, asked.interrupt_after) == (
        ("updates", "custom"),
        ("*",),
        ("tools", "model"),
    )
    assert (asked.metadata, asked.tags, asked.step_count_max, asked.after_s) == ({"a": 1, "b": 2}, ("x",), 9, 3)
    assert (asked.create_missing, asked.cancel_on_disconnect, asked.resumable) == (True, True, True)
    assert asked.multitask is Multitask.ROLLBACK
    assert asked.kwargs["interrupt_before"] == "*"


def test_a_run_without_a_thread_names_no_place() -> None:
    """There is no checkpoint to leave from, and no missing thread to refuse."""
    assert refused(stateless=True, config={"configurable": {"thread_id": THREAD}}) == "$.config.configurable"
    assert refused(stateless=True, if_not_exists="reject") == "$.if_not_exists"
    with pytest.raises(msgspec.ValidationError):
        spec(stateless=True, checkpoint_id=CHECKPOINT)
