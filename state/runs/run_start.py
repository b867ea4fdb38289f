"""Where a run starts that names a checkpoint. Pure: the rule, applied to rows that were read with the thread locked."""

from dataclasses import dataclass

from threadmark.state.errors import Conflict
from threadmark.state.fold.thread_state import Position

__all__ = ["Start", "leaves_from"]


@dataclass(frozen=True, slots=True)
class Start:
    """The position that a run is to start from, and whether the thread was there when its head was `head_seq`."""

    checkpoint_id: str
    position: Position
    is_present: bool
    head_seq: int


def leaves_from(start: Start, *, is_busy: bool, resumes: bool, speaks: bool) -> int | None:
    """The seq after which a fork leaves; None if the run continues from the thread's present position.

    Chat front ends always send the thread's present checkpoint, so new messages or an answer with it do not fork.
    Raises Conflict for an answer at any other checkpoint, where no question is open.
    """
    stands_there = start.is_present and not is_busy
    if stands_there and (resumes or speaks):
        return None
    if resumes:
        raise Conflict(f"No question is open at checkpoint {start.checkpoint_id}: the thread has moved on from there.")
    return start.position.seq
