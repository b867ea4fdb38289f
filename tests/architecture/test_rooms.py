"""Packages are divided into rooms: few modules each, a sentence about each, and no name twice in one package."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from tests.architecture.sources import PACKAGES, ROOT, source

MODULE_COUNT_MAX = 16
#: Alembic finds these by their names in each of its folders.
OF_ALEMBIC = "migrations"


def rooms() -> list[Path]:
    """Every folder of the packages that holds modules, the folders of migrations left out."""
    folders = {path.parent for package in (*PACKAGES, "threadmark") for path in (ROOT / package).rglob("*.py")}
    return sorted(folder for folder in folders if OF_ALEMBIC not in folder.relative_to(ROOT).parts)


def modules(room: Path) -> list[str]:
    """The names of a room's modules."""
    return sorted(path.stem for path in room.glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("room", rooms(), ids=lambda room: room.relative_to(ROOT).as_posix())
def test_a_room_is_small_and_says_what_belongs_there(room: Path) -> None:
    """At most 16 modules, and a docstring of more than its name."""
    assert len(modules(room)) <= MODULE_COUNT_MAX
    docstring = ast.get_docstring(source(room / "__init__.py").tree) or ""
    assert len(docstring.split()) >= 3 or room.is_relative_to(ROOT / "examples"), docstring


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_name_stands_in_two_rooms(package: str) -> None:
    """A name leads to one file of a package. The routes and commands of the API are named by what they are about."""
    found: dict[str, list[str]] = defaultdict(list)
    for room in rooms():
        if room.is_relative_to(ROOT / package):
            for name in modules(room):
                found[name].append(room.relative_to(ROOT).as_posix())

    assert {name: places for name, places in found.items() if len(places) > 1} == {}
