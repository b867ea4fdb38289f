"""Packages whose names are imported when they are asked for.

A package lists what it offers in an `if TYPE_CHECKING:` block of plain imports, which type checkers and the import
contract read. At run time the block is the table of a module `__getattr__` (PEP 562): `from threadmark.state import
Journal` imports the module of `Journal` and none of the others, so a command pays for what it uses.
"""

import ast
import importlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["lazy_exports"]


def lazy_exports(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package with an `if TYPE_CHECKING:` block of imports.

    Assign them in the `else:` of that block: a type checker that saw a `__getattr__` would accept any name.
    """

    @cache
    def places() -> dict[str, tuple[str, str]]:
        return _places(Path(file).read_text(encoding="utf-8"))

    def get(name: str) -> Any:
        if name not in places():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, original = places()[name]
        value = getattr(importlib.import_module(module), original)
        # Asked for once: from now on it is an ordinary attribute.
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *places()})

    return get, names


def _places(source: str) -> dict[str, tuple[str, str]]:
    """Each name of the block: the module that has it, and its name there."""
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
