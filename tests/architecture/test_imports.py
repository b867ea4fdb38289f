"""Imports point one way, tables stay at home, and what is imported is installed."""

import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

from tests.architecture.sources import ONE_NAME, PACKAGES, PROGRAMS, ROOT, Source, imported_modules, snippet, sources

PRIVATE = {"tables", "statements"}
SERVER = (*PACKAGES, "examples")


def private_imports(file: Source) -> list[str]:
    """Imports of another package's private modules."""
    return [
        file.at(node, f"imports {module}")
        for node, module in imported_modules(file.tree)
        if (parts := module.removeprefix(f"{ONE_NAME}.").split("."))[0] in PACKAGES
        and parts[0] != file.package
        and PRIVATE & set(parts[1:])
    ]


#: The one module that may import what an extra brings, and does so only when the extra is asked for.
EXTRA_OF = {"memory/embedders/minilm.py": "minilm", "workers/telemetry/otel.py": "otel"}


def normalised(distribution: str) -> str:
    """A distribution's name as package indexes compare it."""
    return distribution.lower().replace("_", "-").replace(".", "-")


def _names(lines: list[str]) -> set[str]:
    return {normalised(line.split(">")[0].split("=")[0].split("[")[0]) for line in lines}


def test_the_import_contract_holds() -> None:
    """app > workers > compaction > {state | memory} > db; HTTP in app, arq in workers (pyproject.toml has it all)."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    linted = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_the_contract_covers_every_package() -> None:
    """No package of the server escapes the contract."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]

    assert contract["root_packages"] == [ONE_NAME]
    layers = {name.strip() for layer in contract["contracts"][0]["layers"] for name in layer.split("|")}
    assert layers == {f"{ONE_NAME}.{package}" for package in (*PACKAGES, "db")}


def test_tables_and_statements_are_private() -> None:
    """A package's tables and SQL may change without asking anybody, because nobody else imports them."""
    findings = [finding for file in sources(*PROGRAMS) for finding in private_imports(file)]

    assert not findings, "\n".join(findings)


def test_the_rule_sees_every_form_of_a_private_import() -> None:
    """`import`, `from … import` and a name inside the module are one and the same."""
    forms = snippet(
        "import threadmark.state.tables\nfrom threadmark.state import tables\n"
        "from threadmark.memory.store.statements import RECALL\nfrom threadmark import state\n"
    )

    assert {finding.split(":")[1] for finding in private_imports(forms)} == {"1", "2", "3"}


def test_what_the_server_imports_is_declared() -> None:
    """A dependency of the tests, or of another dependency, is not there on a user's machine for ever."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = _names(project["dependencies"])
    extras = {name: _names(lines) for name, lines in project["optional-dependencies"].items()}
    at_home = sys.stdlib_module_names | {ONE_NAME, "bench"}
    providers = packages_distributions()

    undeclared = {
        file.at(node, f"imports {module}")
        for file in sources(*SERVER)
        for node, module in imported_modules(file.tree)
        if (top := module.partition(".")[0]) not in at_home
        and (declared | extras.get(EXTRA_OF.get(file.name, ""), set())).isdisjoint(
            normalised(name) for name in providers.get(top, [top])
        )
    }

    assert not undeclared, "\n".join(sorted(undeclared))
