"""The lock, and its twin for pip, install the same from the public index and from nowhere else."""

import re
import tomllib
from typing import Any

from tests.architecture.sources import ROOT

INDEX_HOSTS = {"pypi.org", "files.pythonhosted.org"}
HOST = re.compile(r"\w+://([^/\s\"]*)")
PIN = re.compile(r"([a-z0-9][a-z0-9-]*)==(\S+)( ; .+)?")


def lock() -> dict[str, Any]:
    """uv.lock, parsed."""
    return tomllib.loads((ROOT / "uv.lock").read_text())


def pins() -> list[str]:
    """The lines of constraints.txt that are not comments."""
    return [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]


def test_the_lock_names_only_the_public_index() -> None:
    """A mirror's address works for one machine only."""
    assert set(HOST.findall((ROOT / "uv.lock").read_text())) == INDEX_HOSTS


def test_constraints_are_plain_pins() -> None:
    """pip gets versions: no address, no option, no extra (which constraints must not have)."""
    assert [line for line in pins() if not PIN.fullmatch(line)] == []


def test_pip_and_uv_install_the_same_versions() -> None:
    """constraints.txt is the lock over again; `make lock` renews both."""
    locked = {(package["name"], package["version"]) for package in lock()["package"] if package["name"] != "threadmark"}
    pinned = {(match[1], match[2]) for line in pins() if (match := PIN.fullmatch(line))}

    assert pinned == locked


def test_the_lock_is_as_new_as_the_dependencies() -> None:
    """`uv sync --frozen` does not notice a dependency that was added without `make lock`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = [line for lines in project["project"]["optional-dependencies"].values() for line in lines]
    declared = [*project["project"]["dependencies"], *extras, *project["dependency-groups"]["dev"]]
    metadata = next(package for package in lock()["package"] if package["name"] == "threadmark")["metadata"]
    known = [*metadata["requires-dist"], *metadata["requires-dev"]["dev"]]

    assert sorted(re.split(r"[\[><=~! ]", line)[0] for line in declared) == sorted(entry["name"] for entry in known)
