"""What a command, or an import of the public face, loads: the libraries that it uses, and none of the others."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.sources import ROOT
from threadmark.app import command_line, commands

#: Libraries that take from a tenth of a second to a second each to load.
HEAVY = {
    "alembic",
    "arq",
    "httpx2",
    "litestar",
    "numpy",
    "openai",
    "prometheus_client",
    "psycopg",
    "pydantic",
    "qdrant_client",
    "qdrant_edge",
    "redis",
    "sqlalchemy",
    "sqlmodel",
    "tiktoken",
    "tokenizers",
    "uvicorn",
}

COMMAND = """
import json, sys
from threadmark.app.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as end:
    code = end.code
print(json.dumps([code, sorted(sys.modules)]))
"""


def loaded_by_command(data_dir: Path, *arguments: str) -> set[str]:
    """The heavy libraries in the process of a command that ended well."""
    code, loaded = _last_line(COMMAND, *arguments, data_dir=data_dir)
    assert code == 0
    return HEAVY & set(loaded)


def loaded_by(statement: str) -> set[str]:
    """The heavy libraries in a process that ran the statement."""
    return HEAVY & set(_last_line(f"{statement}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"))


def _last_line(code: str, *arguments: str, data_dir: Path | None = None) -> Any:
    environment = os.environ | ({} if data_dir is None else {"THREADMARK_DATA_DIR": str(data_dir)})
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("serve", "--help"), ("keys", "create", "--help")])
def test_help_loads_no_library(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Commands are declared without anything that they need when they run."""
    assert loaded_by_command(tmp_path, *arguments) == set()


def test_keys_and_verify_load_the_database_alone(tmp_path: Path) -> None:
    """No API, no model, no index."""
    database = {"alembic", "psycopg", "pydantic", "sqlalchemy", "sqlmodel"}
    assert loaded_by_command(tmp_path, "migrate") <= database

    assert loaded_by_command(tmp_path, "keys", "list") <= database
    assert loaded_by_command(tmp_path, "verify") <= database


def test_a_worker_loads_no_framework_of_the_api() -> None:
    """Its health port is a plain ASGI function."""
    assert "litestar" not in loaded_by("from threadmark.app.commands import run_worker")
    assert {"litestar", "uvicorn"} & loaded_by("from threadmark.workers.wiring import open_resources") == set()


def test_defining_agents_loads_pydantic_alone() -> None:
    """A module of agents loads in a unit test as fast as it does without a server around it."""
    assert loaded_by("from threadmark import ChatAgent, CompactionPolicy, MemoryPolicy, Registry, tool") <= {"pydantic"}


def test_importing_the_package_loads_nothing() -> None:
    """Its names are imported when they are asked for, and so are those of the rooms."""
    rooms = ("app", "compaction", "memory", "state", "workers")
    assert loaded_by("import threadmark, " + ", ".join(f"threadmark.{room}" for room in rooms)) == set()


def test_every_declared_command_exists() -> None:
    """The declarations name what they run; each of the names is there, and each of them is declared."""
    source = Path(command_line.__file__).read_text(encoding="utf-8")
    declared = set(re.findall(r'action="(\w+)"', source)) - {"append", "store_true", "version"}

    assert declared == set(commands.__all__)
    assert all(callable(getattr(commands, name)) for name in commands.__all__)


def test_a_name_that_a_package_lacks_is_an_error() -> None:
    """As it is for a package that imports everything at once."""
    with pytest.raises(AttributeError, match=r"module 'threadmark\.app\.commands' has no attribute 'run_nothing'"):
        getattr(commands, "run_nothing")  # noqa: B009
    assert set(commands.__all__) <= set(dir(commands))
