"""Branches: which entries of a thread are seen from which branch.

A thread's entries have one dense `seq` over all its branches. A lineage lists, from the root, the branches that lead
to a tip, each with the last seq that still belongs to it; the tip has no last one.
"""

from collections.abc import Iterable, Iterator

import msgspec

from state.entry import Recorded

__all__ = ["ROOT", "Lineage", "Stretch", "fork", "sees", "visible"]


class Stretch(msgspec.Struct, frozen=True, array_like=True):
    """A branch, and the last seq of it that a lineage sees (None: up to its tip)."""

    branch: int
    upto_seq: int | None = None


Lineage = tuple[Stretch, ...]
ROOT: Lineage = (Stretch(0),)


def sees(lineage: Lineage, branch: int, seq: int) -> bool:
    """Whether the entry at `seq` on `branch` belongs to the lineage."""
    return any(each.branch == branch and (each.upto_seq is None or seq <= each.upto_seq) for each in lineage)


def fork(lineage: Lineage, at_seq: int, branch_of_seq: int, new_branch: int) -> Lineage:
    """The lineage of a new branch that leaves at `at_seq`, an entry on `branch_of_seq`; 0 leaves before everything."""
    kept: list[Stretch] = []
    for each in lineage:
        if each.branch == branch_of_seq:
            kept.append(Stretch(each.branch, at_seq))
            break
        kept.append(each)
    return (*kept, Stretch(new_branch))


def visible(entries: Iterable[Recorded], lineage: Lineage) -> Iterator[Recorded]:
    """The entries that the lineage sees, in order."""
    bounds = {each.branch: each.upto_seq for each in lineage}
    for each in entries:
        if each.branch in bounds:
            upto = bounds[each.branch]
            if upto is None or each.seq <= upto:
                yield each
