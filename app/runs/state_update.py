"""Updates of a thread's state from outside: what is asked for, checked against what the thread would become."""

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection

from threadmark.app.http.body_errors import BodyRefused
from threadmark.app.runs.thread_state import ThreadSnapshot, position_seq, stand
from threadmark.app.wire.conversations.message_schema import Revision, check_calls
from threadmark.state import (
    FoldCache,
    Fork,
    NotFound,
    Recorded,
    RunStatus,
    StateUpdated,
    Stretch,
    ThreadBusy,
    ThreadState,
    Update,
    apply,
    checkpoint_id_of,
    fold,
    fork_lineage,
    kind_of,
    list_runs,
    list_waits,
    lock_thread,
    read_entries,
    read_history,
    read_leaves,
    thread_of,
    update_state,
    visible,
)

__all__ = ["UpdateSpec", "update_thread"]

_MESSAGES = "$.values.messages"
_UNFINISHED = (RunStatus.PENDING, RunStatus.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateSpec:
    """How a thread is to change, from which checkpoint (None: its head), and who asks.

    `as_node` says after which node the thread stands then: after `model` it asks for nothing but the calls of the
    last reply; after `tools` the model is next.
    """

    revision: Revision
    as_node: Literal["model", "tools"] | None
    checkpoint_id: str | None
    by: str


def update_thread(
    connection: Connection, fold_cache: FoldCache, tenant_id: str, thread_id: str, spec: UpdateSpec, now_us: int
) -> Recorded:
    """Append the update, on a new branch where it leaves from an earlier checkpoint.

    Raises NotFound, BodyRefused for a transcript that no model could take, ThreadBusy while a run is unfinished.
    """
    row = lock_thread(connection, tenant_id, thread_id)
    if row is None:
        raise NotFound("Thread", thread_id)
    # Read under the lock: what is decided here holds until the update is written.
    thread = thread_of(row)
    # Checked first: a run is about to write, so a conflict with the present transcript is not the caller's mistake.
    if any(list_runs(connection, thread.number, status=status, limit=1) for status in _UNFINISHED):
        raise ThreadBusy(thread_id)
    snapshot = stand(connection, thread, fold_cache, keep=False)
    fork, base = _leaves_from(connection, snapshot, spec.checkpoint_id)
    entry = StateUpdated(
        messages=spec.revision.messages, removed=_removed(spec.revision, base), as_node=spec.as_node, by=spec.by
    )
    branch = thread.branch if fork is None else fork.branch
    after = base.snapshot()
    apply(after, Recorded(thread.head_seq + 1, branch, None, thread.fence + 1, now_us, kind_of(entry), entry))
    _check(after, spec)
    asked_still = {call.wait_id for call in after.open_waits}
    waits = [wait.wait_id for wait in list_waits(connection, thread.number, status="open")]
    change = Update(
        thread=thread,
        entry=entry,
        expected_seq=thread.head_seq,
        fork=fork,
        superseded=tuple(each for each in waits if each not in asked_still),
    )
    return update_state(connection, change, now_us)


def _leaves_from(
    connection: Connection, snapshot: ThreadSnapshot, checkpoint_id: str | None
) -> tuple[Fork | None, ThreadState]:
    """The state that is updated, and the fork that leads to it."""
    thread = snapshot.thread
    if checkpoint_id is None or checkpoint_id == _present_id(snapshot):
        return None, snapshot.state
    entries, leaves = read_entries(connection, thread.number), read_leaves(connection, thread.number)
    seq = position_seq(entries, thread, checkpoint_id)
    position = read_history(entries, leaves).positions.get(seq)
    if position is None:
        raise NotFound("Checkpoint", checkpoint_id)
    branch = 1 + max(leaves, default=0)
    lineage = fork_lineage(leaves, Stretch(position.branch, seq), branch)
    fork = Fork(branch=branch, parent=position.branch, fork_seq=seq, lineage=lineage)
    return fork, fold(visible(entries, lineage))


def _present_id(snapshot: ThreadSnapshot) -> str | None:
    thread, position = snapshot.thread, snapshot.state.position
    if position is None:
        return None
    return checkpoint_id_of(thread.thread_id, position.branch, position.seq, position.at_us)


def _removed(revision: Revision, base: ThreadState) -> tuple[str, ...]:
    if revision.clears:
        return tuple(base.by_id)
    for message_id in revision.removed:
        if message_id not in base.by_id:
            raise BodyRefused(_MESSAGES, f"removes {message_id!r}, which is no message of the thread")
    return revision.removed


def _check(after: ThreadState, spec: UpdateSpec) -> None:
    check_calls(after.messages, _MESSAGES, may_end_open=True)
    half_done = [call for call in after.calls.values() if call.outcome is not None]
    if half_done and len(half_done) == len(after.calls):
        # The results of a reply's calls join the transcript together; here some would never come.
        raise BodyRefused(_MESSAGES, f"answers some calls of a reply and not {half_done[0].call.id!r}; answer them all")
    if spec.as_node == "tools" and after.next != "model":
        raise BodyRefused("$.as_node", "is tools, and the thread would not stand after the results of tools")
