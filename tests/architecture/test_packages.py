"""A package says in its `__init__.py` what it is and what others may use."""

import ast
import importlib

import pytest

from tests.architecture.sources import ONE_NAME, PACKAGES, ROOT, source

DOCSTRING_WORDS_MIN = 3


def public_names(tree: ast.Module) -> list[str] | None:
    """The literal value of `__all__`, or None where there is none."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return list(ast.literal_eval(value))
            case ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value):
                return list(ast.literal_eval(value))
    return None


def sorting_key(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as ruff sorts them (RUF022)."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_introduces_itself(package: str) -> None:
    """Its docstring is a sentence, not its name over again."""
    docstring = ast.get_docstring(source(ROOT / package / "__init__.py").tree) or ""

    assert len(docstring.split()) >= DOCSTRING_WORDS_MIN, f"{package}/__init__.py says only {docstring!r}"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_lists_what_it_offers(package: str) -> None:
    """`__all__` is there, sorted, without repetition, and each name of it exists."""
    names = public_names(source(ROOT / package / "__init__.py").tree)
    assert names is not None, f"{package}/__init__.py has no __all__"

    assert names == sorted(set(names), key=sorting_key)
    module = importlib.import_module(f"{ONE_NAME}.{package}")
    assert [name for name in names if not hasattr(module, name)] == []
