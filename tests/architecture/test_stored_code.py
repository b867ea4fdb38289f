"""Nothing that is stored or received ever becomes code."""

import ast

import pytest

from tests.architecture.sources import PROGRAMS, Source, callee, dotted, imported_modules, snippet, sources

RUNS_DATA = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle", "joblib"}
BUILTINS = {"eval", "exec", "compile", "__import__"}
YAML = {"yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load"}
#: Imports by name: only what the operator configures is looked up, and only in one place.
IMPORTS_BY_NAME = {"import_module", "resolve_name"}


def runs_data(file: Source) -> list[str]:
    """Imports and calls that turn bytes or text into running code."""
    imports = {(node, name) for node, name in imported_modules(file.tree) if name.partition(".")[0] in RUNS_DATA}
    calls = {
        (node, dotted(node.func))
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Call) and (dotted(node.func) in BUILTINS | YAML)
    }
    return sorted({file.at(node, name) for node, name in imports | calls})


def test_data_never_becomes_code() -> None:
    """A forged row or message cannot run anything: no pickle, marshal, eval, exec or unsafe YAML."""
    findings = [finding for file in sources(*PROGRAMS) for finding in runs_data(file)]

    assert not findings, "\n".join(findings)


def test_modules_are_imported_by_name_in_two_places() -> None:
    """A setting names the operator's registry of agents, and a package its own names; no stored name is imported."""
    importers = {
        file.name
        for file in sources(*PROGRAMS)
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Call) and callee(node) in IMPORTS_BY_NAME
    }

    assert importers == {"threadmark/lazy.py", "workers/agents/agent.py"}


@pytest.mark.parametrize(
    "line",
    ["import pickle", "from marshal import loads", "eval(text)", "exec(text)", "yaml.load(text)", "__import__(name)"],
)
def test_the_rule_sees(line: str) -> None:
    """Each forbidden way is found."""
    assert runs_data(snippet(line)) != []


@pytest.mark.parametrize("line", ["re.compile(p)", "asyncio.create_subprocess_exec(p)", "yaml.safe_load(t)"])
def test_the_rule_lets_pass(line: str) -> None:
    """A name that only sounds alike is no finding."""
    assert runs_data(snippet(line)) == []
