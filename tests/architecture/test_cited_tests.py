"""A guarantee is as good as the test that proves it, so the documents cite tests, and the tests are there."""

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, source

CITATION = re.compile(r"(tests/[\w./-]+\.py)::(\w+)")
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def defines(path: Path, name: str) -> bool:
    """Whether a file has a test, or a class of tests, of this name."""
    if not path.is_file():
        return False
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return any(isinstance(node, definitions) and node.name == name for node in ast.walk(source(path).tree))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_cited_test_exists(document: Path) -> None:
    """Every `tests/….py::test_name` in a document exists."""
    cited = CITATION.findall(document.read_text(encoding="utf-8"))

    assert [f"{file}::{name}" for file, name in cited if not defines(ROOT / file, name)] == []
