"""The wheel in a project of a user's own, and docs/agents.md done in it as the page says: every block of it runs."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.sources import ROOT
from tests.support.installed import InstalledService, environment_of, install

PAGE = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
PYTHON, SHELL = (re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL) for kind in ("python", "shell"))

#: Modules of a project whose names are those of our folders.
OWN = ("app/__init__.py", "state.py", "memory.py", "workers/__init__.py", "examples/__init__.py", "compaction.py")
OWN_AGENTS = """
import app, compaction, examples, memory, state, workers
from threadmark import ChatAgent, Effect, Registry, tool

@tool(effect=Effect.PURE)
async def owners() -> list[str]:
    "Whose the modules are."
    return [each.OWNER for each in (app, compaction, examples, memory, state, workers)]

@tool(effect=Effect.PURE)
async def place() -> str:
    "Where the server is."
    import threadmark.state
    return threadmark.state.__file__

registry = Registry([ChatAgent(name="own", tools=[owners, place])])
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the wheel is installed."""
    return install(tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the files that the page has one write, and with modules of its own."""
    folder = tmp_path_factory.mktemp("project")
    agents, tests, *_ = PYTHON
    files = {"shop/__init__.py": "", "shop/agents.py": agents, "test_agents.py": tests, "app/agents.py": OWN_AGENTS}
    for name, text in (files | dict.fromkeys(OWN, "OWNER = 'user'\n")).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def run(site: Path, project: Path, *arguments: str) -> str:
    """The output of Python in the project's folder; it must end well."""
    environment = os.environ | environment_of(site)
    done = subprocess.run(
        [sys.executable, *arguments], cwd=project, env=environment, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def shop(site: Path, project: Path) -> Iterator[InstalledService]:
    """The server of the page's shell block."""
    (script,) = SHELL
    with InstalledService(site, project, script) as service:
        yield service


@pytest.fixture
def own(site: Path, project: Path) -> Iterator[InstalledService]:
    """A server of the agents in the project's own `app`."""
    with InstalledService(site, project, "THREADMARK_AGENTS=app.agents:registry threadmark serve") as service:
        yield service


def test_the_tests_of_the_page_pass(site: Path, project: Path) -> None:
    """They are run as the page says, by pytest in the project's folder, against the wheel."""
    said = run(site, project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_agents.py")

    assert "3 passed" in said


@pytest.mark.parametrize("number", range(2, len(PYTHON)))
def test_every_other_block_runs(site: Path, project: Path, number: int) -> None:
    """With the files of the page in the folder."""
    run(site, project, "-c", PYTHON[number])


async def test_the_page_serves_its_agent(shop: InstalledService) -> None:
    """`doctor` finds nothing, and the agent answers."""
    async with shop.sdk() as sdk:
        said: Any = await sdk.runs.wait(None, "shopkeeper", input={"messages": 'call stock {"article": "tea"}'})

    assert said["messages"][-1]["content"] == "Done.\n12"
    assert "agents: shopkeeper" in shop.log
    assert "!!" not in shop.log


async def test_the_modules_of_a_user_stay_the_users(own: InstalledService, site: Path) -> None:
    """A project may have folders and modules of any name but `threadmark`."""
    async with own.sdk() as sdk:
        said: Any = await sdk.runs.wait(None, "own", input={"messages": "call owners\ncall place"})

    assert said["messages"][-1]["content"] == "\n".join(
        ["Done.", '["user","user","user","user","user","user"]', f"{site / 'threadmark' / 'state' / '__init__.py'}"]
    )
