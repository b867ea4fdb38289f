"""The project's own files, as the rules of this folder read them."""

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: The packages that make the server, as the import contract names them.
PACKAGES = ("app", "compaction", "memory", "state", "workers")
#: Everything that runs outside of tests.
PROGRAMS = (*PACKAGES, "threadmark", "bench", "examples")
#: The folder whose links make the packages one; every import begins with its name.
ONE_NAME = "threadmark"
UNTRACKED = {".git", ".venv", ".threadmark", "__pycache__"}


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file: where it is from the project's root, and what it says."""

    name: str
    tree: ast.Module
    line_count: int

    @property
    def said_line_count(self) -> int:
        """Its lines without the imports at its head, which are a list of names."""
        imports = [node for node in self.tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        return self.line_count - sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)

    @property
    def package(self) -> str:
        """The top-level folder it belongs to."""
        return self.name.partition("/")[0]

    def at(self, node: ast.stmt | ast.expr, finding: str) -> str:
        """A finding as a place an editor can jump to."""
        return f"{self.name}:{node.lineno}: {finding}"


@cache
def source(path: Path) -> Source:
    """Read and parse one file, once for all rules."""
    text = path.read_text(encoding="utf-8")
    return Source(path.relative_to(ROOT).as_posix(), ast.parse(text, filename=str(path)), len(text.splitlines()))


def sources(*folders: str) -> list[Source]:
    """Every Python file below these top-level folders."""
    return [source(path) for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def snippet(text: str) -> Source:
    """A made-up file, to show what a rule finds."""
    return Source("snippet.py", ast.parse(text), len(text.splitlines()))


def tracked_files() -> Iterator[Path]:
    """The files git tracks; in a copy without git, every file that it would not ignore."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        yield from (path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file())
        return
    for path in sorted(ROOT.rglob("*")):
        if path.is_file() and UNTRACKED.isdisjoint(path.relative_to(ROOT).parts):
            yield path


def imported_modules(tree: ast.Module) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    """Each absolute import with the full name of what it may bring in: `from a import b` gives `a` and `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node, node.module
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)


def callee(call: ast.Call) -> str:
    """The last part of what is called: `execute` of `connection.execute(…)`."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def dotted(node: ast.expr) -> str:
    """`a.b.c` of a chain of names, and nothing for any other expression."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=owner, attr=name) if path := dotted(owner):
            return f"{path}.{name}"
    return ""
