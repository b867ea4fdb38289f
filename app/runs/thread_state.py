"""Where a thread stands, and where it stood: units that read its journal and fold it. All run in a reader's thread."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from threadmark.app.wire.conversations.state_schema import Moment, metadata_of
from threadmark.state import (
    FoldCache,
    NotFound,
    Recorded,
    Thread,
    ThreadState,
    Wait,
    checkpoint_id_of,
    get_thread,
    list_waits,
    read_entries,
    read_history,
    read_leaves,
    seq_of_checkpoint,
    transcripts,
)

__all__ = ["Question", "ThreadSnapshot", "at_checkpoint", "history", "position_seq", "stand"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSnapshot:
    """A thread now. `moment` is None before anything was said."""

    thread: Thread
    state: ThreadState
    moment: Moment | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which positions of a thread, newest first: those `before` a checkpoint, with this metadata, or `exactly` one."""

    limit: int
    before: str | None = None
    exactly: str | None = None
    metadata: Mapping[str, object] | None = None


def stand(connection: Connection, thread: Thread, fold_cache: FoldCache, *, keep: bool = True) -> ThreadSnapshot:
    """The thread as its head stands: a query for what is not folded yet, if any, and one for the open questions.

    A unit that writes does not `keep` what was folded.
    """
    folded = fold_cache.read(connection, thread, keep=keep)
    state = folded.state
    position = state.position
    if position is None:
        return ThreadSnapshot(thread=thread, state=state, moment=None)
    open_waits = {wait.wait_id: wait for wait in list_waits(connection, thread.number, status="open")}
    moment = Moment(
        position=position,
        messages=state.messages,
        waits=[open_waits[call.wait_id] for call in state.open_waits if call.wait_id in open_waits],
        failure=state.failure,
        origin=folded.run_index.origin_of(position.run),
    )
    return ThreadSnapshot(thread=thread, state=state, moment=moment)


def at_checkpoint(
    connection: Connection, fold_cache: FoldCache, tenant_id: str, thread_id: str, checkpoint_id: str | None
) -> Moment | None:
    """What the checkpoint names; without one the present, which is None before anything was said. Raises NotFound."""
    thread = get_thread(connection, tenant_id, thread_id)
    if checkpoint_id is None:
        return stand(connection, thread, fold_cache).moment
    found = history(connection, thread, Question(limit=1, exactly=checkpoint_id))
    if not found:
        raise NotFound("Checkpoint", checkpoint_id)
    return found[0]


def history(connection: Connection, thread: Thread, question: Question) -> list[Moment]:
    """Moments over all branches of the thread, newest first. Raises NotFound for an unknown `before`."""
    entries = read_entries(connection, thread.number)
    leaves = read_leaves(connection, thread.number)
    history = read_history(entries, leaves)
    before_seq = None if question.before is None else position_seq(entries, thread, question.before)
    exact_seq = None if question.exactly is None else position_seq(entries, thread, question.exactly)
    chosen: list[int] = []
    for seq, position in reversed(history.positions.items()):
        if (before_seq is not None and seq >= before_seq) or (exact_seq is not None and seq != exact_seq):
            continue
        shown = metadata_of(thread.thread_id, position, history.origin_of(position))
        if any(key not in shown or shown[key] != value for key, value in (question.metadata or {}).items()):
            continue
        chosen.append(seq)
        if len(chosen) == question.limit:
            break
    said = transcripts(entries, leaves, frozenset(chosen))
    waits = _by_position(list_waits(connection, thread.number, status="open"), history.asked)
    return [
        Moment(
            position=history.positions[seq],
            messages=said[seq],
            waits=waits.get(seq, ()),
            failure=history.failures.get(seq),
            origin=history.origin_of(history.positions[seq]),
        )
        for seq in chosen
    ]


def position_seq(entries: Sequence[Recorded], thread: Thread, checkpoint_id: str) -> int:
    """The seq that a checkpoint of this thread names, also one that is not shown any more. Raises NotFound."""
    seq = seq_of_checkpoint(checkpoint_id)
    for each in entries:
        if each.seq == seq and checkpoint_id_of(thread.thread_id, each.branch, each.seq, each.at_us) == checkpoint_id:
            return each.seq
    raise NotFound("Checkpoint", checkpoint_id)


def _by_position(waits: Sequence[Wait], asked: Mapping[str, int]) -> dict[int, list[Wait]]:
    found: dict[int, list[Wait]] = {}
    for wait in waits:
        if wait.wait_id in asked:
            found.setdefault(asked[wait.wait_id], []).append(wait)
    return found
