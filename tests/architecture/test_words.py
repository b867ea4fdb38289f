"""One word for one thing: words that were retired do not come back into identifiers (docs/glossary.md has today's)."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.sources import PROGRAMS, Source, snippet, sources

#: The retired word beside what is said instead; each as a part of an identifier.
RETIRED = {
    "chore": "task",
    "chores": "task_runner",
    "desk": "services",
    "doorbell": "notifier",
    "enrol": "register",
    "glance": "refresh",
    "lanes": "keyed_lock",
    "outline": "run_index",
    "pulse": "worker_stats",
    "rarity": "idf",
    "rouse": "wake",
    "sealer": "cursor_signer",
    "stir": "step_waiter",
    "stirs": "notices",
    "wish": "spec",
}
#: Files that have such a word for a reason of their own.
EXCEPT: dict[str, set[str]] = {}


def words(identifier: str) -> set[str]:
    """`_redisDoorbell_of` is made of redis, doorbell and of."""
    return {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier)}


def identifiers(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every name that a file defines, binds or reads, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.keyword(arg=str(name)):
                yield node.lineno, name


def retired(file: Source) -> list[str]:
    """Identifiers with a retired word, and what to say instead."""
    gone = RETIRED.keys() - EXCEPT.get(file.name, set())
    return [
        f"{file.name}:{line}: {name}: say {RETIRED[word]}"
        for line, name in identifiers(file.tree)
        for word in sorted(words(name) & gone)
        if not name.startswith("test_")  # a sentence, in which a wish is a wish
    ]


def test_no_retired_word_comes_back() -> None:
    """In identifiers, and in the names of modules."""
    files = [file for file in sources(*PROGRAMS, "tests") if "/migrations/versions/" not in file.name]
    findings = [finding for file in files for finding in retired(file)]
    findings += [file.name for file in files if words(file.name.removesuffix(".py")) & RETIRED.keys()]

    assert not findings, "\n".join(findings)


@pytest.mark.parametrize(
    "line", ["class Desk: ...", "x.doorbell", "def f(chore): ...", "f(stirs=1)", "redis_doorbell = 1"]
)
def test_the_rule_sees(line: str) -> None:
    """Classes, attributes, parameters, keywords and parts of names."""
    assert retired(snippet(line)) != []


@pytest.mark.parametrize("line", ["stirring = 1", "'desk'", "wishes = 1"])
def test_the_rule_lets_pass(line: str) -> None:
    """Longer words and strings are no findings."""
    assert retired(snippet(line)) == []
