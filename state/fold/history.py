"""History: the positions of a thread over all its branches, and the messages at each of them. Pure.

Clients list positions and fork from them. Those of a rolled-back run are hidden; its entries stay on a branch that was
left.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from threadmark.state.entries.entry import Failure, Recorded, RolledBack, RunStarted, WaitOpened
from threadmark.state.entries.lineage import Leave
from threadmark.state.entries.message import Message
from threadmark.state.entries.run_index import Origin
from threadmark.state.fold.fold import apply
from threadmark.state.fold.thread_state import Position, ThreadState

__all__ = ["History", "read_history", "transcripts"]

_ROOT_BRANCH = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The positions of a thread, by seq, oldest first."""

    positions: dict[int, Position]
    origins: Mapping[int, Origin]  #: by number of the run
    asked: Mapping[str, int]  #: wait id -> seq of the position where it was opened
    failures: Mapping[int, Failure]  #: seq of a branch's last position -> why the branch's last run failed

    def origin_of(self, position: Position) -> Origin | None:
        """The run that created the position; None for an external update, and in a copied thread."""
        return None if position.run is None else self.origins.get(position.run)


def read_history(entries: Sequence[Recorded], leaves: Mapping[int, Leave]) -> History:
    """The positions recorded in the journal's entries (all branches, in order)."""
    origins, rolled_back = _runs(entries)
    positions: dict[int, Position] = {}
    asked: dict[str, int] = {}
    last: dict[int, ThreadState] = {}
    for each, state in _walk(entries, leaves):
        last[each.branch] = state
        position = state.position
        if position is None:
            continue
        if position.seq == each.seq and position.run not in rolled_back:
            positions[each.seq] = position
        if isinstance(each.entry, WaitOpened):
            asked[each.entry.wait_id] = position.seq
    failures = {
        state.position.seq: state.failure
        for state in last.values()
        if state.position is not None and state.failure is not None
    }
    return History(positions=dict(sorted(positions.items())), origins=origins, asked=asked, failures=failures)


def transcripts(
    entries: Sequence[Recorded], leaves: Mapping[int, Leave], seqs: Collection[int]
) -> dict[int, list[Message]]:
    """The messages at the positions with these seqs."""
    return {
        each.seq: state.messages
        for each, state in _walk(entries, leaves)
        if each.seq in seqs and state.position is not None and state.position.seq == each.seq
    }


def _runs(entries: Sequence[Recorded]) -> tuple[dict[int, Origin], set[int]]:
    """Each run by number, and the numbers of the rolled-back runs."""
    origins: dict[int, Origin] = {}
    numbers: dict[str, int] = {}
    rolled_back: set[int] = set()
    for each in entries:
        if each.run is None:
            continue
        if isinstance(each.entry, RunStarted):
            origins[each.run] = Origin(each.entry.run_id, each.entry.assistant)
            numbers[each.entry.run_id] = each.run
        elif isinstance(each.entry, RolledBack):
            rolled_back.add(numbers.get(each.entry.run_id, each.run))
    return origins, rolled_back


def _walk(entries: Sequence[Recorded], leaves: Mapping[int, Leave]) -> Iterator[tuple[Recorded, ThreadState]]:
    """Each entry once, with the state of its branch after it; a branch begins with the state where it left its parent.

    The state is advanced in place: take what you need from it before the next iteration.
    """
    by_branch: dict[int, list[Recorded]] = defaultdict(list)
    for each in entries:
        by_branch[each.branch].append(each)
    children: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for branch, leave in leaves.items():
        children[leave.parent].append((leave.fork_seq, branch))
    begun = [(_ROOT_BRANCH, ThreadState())]
    while begun:
        branch, state = begun.pop()
        forks = sorted(children[branch], reverse=True)
        for each in by_branch[branch]:
            while forks and forks[-1][0] < each.seq:
                begun.append((forks.pop()[1], state.snapshot()))
            apply(state, each)
            yield each, state
        begun.extend((fork[1], state.snapshot()) for fork in forks)
