"""Where a run leaves from that names a checkpoint. Pure: the rule, for what was read under the lock of the thread."""

from dataclasses import dataclass

from threadmark.state.errors import Conflict
from threadmark.state.fold.thread_state import Position

__all__ = ["Start", "leaves_from"]


@dataclass(frozen=True, slots=True)
class Start:
    """The position that a run is to leave from, and whether the thread stood there when its head was at `head_seq`."""

    checkpoint_id: str
    position: Position
    is_present: bool
    head_seq: int


def leaves_from(start: Start, *, is_busy: bool, resumes: bool, speaks: bool) -> int | None:
    """The seq that a fork leaves after; None where the run goes on from where the thread stands.

    A checkpoint that says where the thread stands, which is what chat front ends always send, makes no fork of new
    messages or of an answer. Raises Conflict for an answer anywhere else: nothing is asked there.
    """
    stands_there = start.is_present and not is_busy
    if stands_there and (resumes or speaks):
        return None
    if resumes:
        raise Conflict(f"Nothing is asked at checkpoint {start.checkpoint_id}: the thread has moved on from there.")
    return start.position.seq
