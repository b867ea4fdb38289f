"""Imports go one way: no circle of modules anywhere, and none of the rooms of a package.

A module directly in a package is a room of its own here. Imports for type checkers count: who reads one room of a
circle has to read them all.
"""

from collections.abc import Callable, Iterable
from functools import cache
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

from tests.architecture.sources import ONE_NAME, PACKAGES


@cache
def imports() -> grimp.ImportGraph:
    """Who imports whom, in everything that is installed."""
    return grimp.build_graph(ONE_NAME, cache_dir=None)


def arrows(groups: Callable[[str], str | None]) -> set[tuple[str, str]]:
    """Which group imports which other one; a module whose group is None is in none of them."""
    graph = imports()
    pairs = {
        (groups(importer), groups(imported))
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
    }
    return {(here, there) for here, there in pairs if here is not None and there is not None and here != there}


def circle(found: Iterable[tuple[str, str]]) -> list[str]:
    """One circle of the arrows, as the names on the way round; nothing when there is none."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for here, there in found:
        sorter.add(here, there)
    try:
        sorter.prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def room_in(package: str) -> Callable[[str], str | None]:
    """The room of a module, for those of the package."""

    def room(module: str) -> str | None:
        names = module.split(".")
        return names[2] if len(names) > 2 and names[1] == package else None

    return room


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Each module can be read, tested and loaded after those that it imports."""
    assert circle(arrows(lambda module: module)) == []


@pytest.mark.parametrize("package", [*PACKAGES, "db", "testing"])
def test_the_rooms_of_a_package_import_each_other_one_way(package: str) -> None:
    """Each room can be read after those that it imports."""
    assert circle(arrows(room_in(package))) == []


def test_a_circle_is_found_whatever_hangs_on_it() -> None:
    """The rule sees a circle of three behind an arrow that leads into it."""
    assert circle({("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")}) in (["b", "c", "b"], ["c", "b", "c"])
    assert circle({("a", "b"), ("b", "c"), ("a", "c")}) == []
