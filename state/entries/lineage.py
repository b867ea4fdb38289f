"""Branches: which entries of a thread are visible from which branch.

A thread's entries share one dense `seq` over all its branches. A lineage lists the branches from the root to a tip,
each with the last seq that still belongs to it; the tip has no last seq.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from threadmark.state.entries.entry import Recorded

__all__ = ["ROOT", "Leave", "Lineage", "Stretch", "fork", "lineage_of", "visible"]


class Stretch(msgspec.Struct, frozen=True, array_like=True):
    """A branch, and the last seq of it that a lineage includes (None: up to its tip)."""

    branch: int
    upto_seq: int | None = None


Lineage = tuple[Stretch, ...]
ROOT: Lineage = (Stretch(0),)


@dataclass(frozen=True, slots=True)
class Leave:
    """Where a branch left its parent: after `fork_seq` (0: before the first entry)."""

    parent: int
    fork_seq: int


def lineage_of(leaves: Mapping[int, Leave], branch: int) -> Lineage:
    """The lineage of a branch's tip."""
    stretches = [Stretch(branch)]
    while branch != 0:
        leave = leaves[branch]
        stretches.append(Stretch(leave.parent, leave.fork_seq))
        branch = leave.parent
    return tuple(reversed(stretches))


def fork(leaves: Mapping[int, Leave], at: Stretch, new_branch: int) -> Lineage:
    """The lineage of a new branch that leaves `at.branch` after `at.upto_seq`."""
    return (*lineage_of(leaves, at.branch)[:-1], at, Stretch(new_branch))


def visible(entries: Iterable[Recorded], lineage: Lineage) -> Iterator[Recorded]:
    """The entries in the lineage, in order."""
    bounds = {each.branch: each.upto_seq for each in lineage}
    for each in entries:
        if each.branch in bounds:
            upto = bounds[each.branch]
            if upto is None or each.seq <= upto:
                yield each
