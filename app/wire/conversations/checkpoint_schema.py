"""Checkpoints of the dialect: names of positions, as they are shown and as callers hand them back."""

from typing import Any

from msgspec import Struct

from threadmark.app.http.body_errors import BodyRefused
from threadmark.app.http.path_ids import uuid_of
from threadmark.app.wire.typed_json import read_as
from threadmark.state import Position, checkpoint_id_of

__all__ = ["CheckpointRef", "ShownCheckpoint", "before_of", "checkpoint_id_in"]


class ShownCheckpoint(Struct):
    """The name of a position. There are no subgraphs, so the namespace is empty."""

    thread_id: str
    checkpoint_id: str
    checkpoint_ns: str = ""

    @classmethod
    def of(cls, thread_id: str, position: Position) -> "ShownCheckpoint":
        """The position's name."""
        checkpoint_id = checkpoint_id_of(thread_id, position.branch, position.seq, position.at_us)
        return cls(thread_id=thread_id, checkpoint_id=checkpoint_id)


class CheckpointRef(Struct, forbid_unknown_fields=True):
    """A position as SDKs hand it back: without `checkpoint_id` it is the present one."""

    thread_id: str | None = None
    checkpoint_ns: str | None = None
    checkpoint_id: str | None = None
    checkpoint_map: dict[str, Any] | None = None


class _Config(Struct, forbid_unknown_fields=True):
    configurable: CheckpointRef


def checkpoint_id_in(ref: CheckpointRef | None, thread_id: str, path: str) -> str | None:
    """The checkpoint that `ref` names; None for the present one. Raises BodyRefused, BadId."""
    if ref is None:
        return None
    if ref.thread_id is not None and uuid_of("thread", ref.thread_id) != thread_id:
        raise BodyRefused(f"{path}.thread_id", "is another thread than the one in the path")
    if ref.checkpoint_ns or ref.checkpoint_map:
        place = "checkpoint_ns" if ref.checkpoint_ns else "checkpoint_map"
        raise BodyRefused(f"{path}.{place}", "is not empty; there are no subgraphs")
    return None if ref.checkpoint_id is None else uuid_of("checkpoint", ref.checkpoint_id)


def before_of(value: Any, thread_id: str, path: str) -> str | None:
    """The checkpoint that a page of history comes before: an id, a checkpoint, or a config with one inside."""
    if value is None:
        return None
    if isinstance(value, str):
        return uuid_of("checkpoint", value)
    if isinstance(value, dict) and "configurable" in value:
        return checkpoint_id_in(read_as(_Config, value, path).configurable, thread_id, f"{path}.configurable")
    return checkpoint_id_in(read_as(CheckpointRef, value, path), thread_id, path)
