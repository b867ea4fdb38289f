"""Checkpoints as SDKs hand them back: an id, a checkpoint, or a config."""

from typing import Any

import pytest

from threadmark.app.http.body_errors import BodyRefused
from threadmark.app.http.path_ids import BadId
from threadmark.app.wire.conversations.checkpoint_schema import CheckpointRef, before_of, checkpoint_id_in

THREAD = "01a22800-76bc-7a35-ba9f-3c7d2ea92509"
CHECKPOINT = "01a22800-7704-8000-8000-059f5256052b"
WHOLE = {"thread_id": THREAD, "checkpoint_ns": "", "checkpoint_id": CHECKPOINT, "checkpoint_map": {}}


@pytest.mark.parametrize("value", [CHECKPOINT, CHECKPOINT.upper(), WHOLE, {"configurable": WHOLE}])
def test_a_checkpoint_is_named_in_three_ways(value: Any) -> None:
    """All of them are what some SDK sends."""
    assert before_of(value, THREAD, "$.before") == CHECKPOINT


@pytest.mark.parametrize("value", [None, {"thread_id": THREAD}, {"configurable": {"thread_id": THREAD}}])
def test_without_an_id_it_is_the_present(value: Any) -> None:
    """RemoteGraph sends a checkpoint with a thread alone."""
    assert before_of(value, THREAD, "$.before") is None


@pytest.mark.parametrize(
    ("ref", "path"),
    [
        (CheckpointRef(thread_id="01a22800-76bc-7a35-ba9f-000000000000"), "$.checkpoint.thread_id"),
        (CheckpointRef(checkpoint_ns="inner"), "$.checkpoint.checkpoint_ns"),
        (CheckpointRef(checkpoint_map={"": CHECKPOINT}), "$.checkpoint.checkpoint_map"),
    ],
)
def test_another_thread_and_a_subgraph_are_refused(ref: CheckpointRef, path: str) -> None:
    """There are no subgraphs, and a checkpoint belongs to its thread."""
    with pytest.raises(BodyRefused) as refused:
        checkpoint_id_in(ref, THREAD, "$.checkpoint")

    assert refused.value.path == path


@pytest.mark.parametrize("text", ["", "now", "0", f"{CHECKPOINT} ", f"{{{CHECKPOINT}}}", "../x"])
def test_what_is_no_uuid_is_no_checkpoint(text: str) -> None:
    """It is refused before anything is looked up."""
    with pytest.raises(BadId):
        before_of(text, THREAD, "$.before")
