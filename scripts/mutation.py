"""A seeded mutation run: small faults put into modules one at a time, and whether the tests that answer notice.

    .venv/bin/python scripts/mutation.py state timeline ledger access runs --sample 100 --seed 1

The tree is copied and only the copy is changed. Each fault is tried in a forked process, which imports our modules
anew and finds every library imported already. A fault that ends in an error, a failed test or a hang is killed.
"""

import argparse
import ast
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
HANG_S = 120

#: Modules, and the test files (below tests) that answer for them: those that tell most of a fault soonest come first,
#: and the next ones are imported only where these pass.
TARGETS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "state": (
        ("state/entries/*.py", "state/fold/*.py", "state/entries/chain.py"),
        (
            "unit/test_state_step*.py",
            "unit/test_state_[!s]*.py",
            "unit/test_golden_digests.py",
            "unit/test_action*.py",
        ),
    ),
    "timeline": (("memory/model/timeline.py",), ("unit/test_memory_boundaries.py", "unit/test_memory_rules.py")),
    "ledger": (
        ("compaction/ledger/*.py",),
        (
            "unit/test_ledger_*.py",
            "unit/test_golden_digests.py",
            "unit/test_compaction_[egt]*.py",
            "unit/test_compaction_account.py",
        ),
    ),
    "access": (
        tuple(f"app/access/{name}.py" for name in ("gate", "key", "ring", "scopes", "token_buckets")),
        (
            "unit/test_access*.py",
            "unit/test_golden_digests.py",
            "unit/test_client_address.py",
            "unit/test_token_buckets.py",
        ),
    ),
    # Over SQLite, except the locks that are PostgreSQL's.
    "runs": (
        ("state/runs/*.py",),
        (
            "conformance/test_state_[actw]*.py",
            "conformance/test_state_[fsj]*.py",
            "conformance/test_claim_by_id.py",
            "unit/test_fallen_locks.py",
            "integration/state/test_liveness.py",
        ),
    ),
}

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_UNPICKED = (ast.Import, ast.ImportFrom)
#: Not imported before the fork: what is tried, and event loops, which do not know their tasks after one.
_OURS = ("threadmark", "tests", "__main__", "conftest", "asyncio", "_asyncio", "uvloop", "pytest_asyncio", "anyio")


class Fault(NamedTuple):
    """A fault that can be put into a tree: where, what in words, and how."""

    line: int
    words: str
    put: Callable[[], None]


class Mutant(NamedTuple):
    """One fault of one module: its file below the root, and its number among the module's faults."""

    target: str
    path: str
    number: int


def faults_of(tree: ast.Module) -> list[Fault]:
    """Every fault that can be put into the tree, always in the same order. Putting one changes the tree."""
    return [fault for node in _code(tree) for fault in (*_in_expression(node), *_in_statements(node))]


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that do something: no imports, no docstrings, no annotations, no lists of exported names."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, _UNPICKED) or _is_text(child) or _exports(child):
                continue
            yield child
            yield from _code(child)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _exports(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and isinstance(name := node.targets[0], ast.Name) and name.id == "__all__"


def _in_expression(node: ast.AST) -> Iterator[Fault]:
    match node:
        case ast.Compare(ops=operators):
            for at, each in enumerate(operators):
                other = _COMPARISONS[type(each)]
                yield Fault(node.lineno, f"{type(each).__name__} → {other.__name__}", _item(operators, at, other()))
        case ast.BinOp(op=operator) if type(operator) in _OPERATORS:
            swapped = _OPERATORS[type(operator)]
            yield Fault(node.lineno, f"{type(operator).__name__} → {swapped.__name__}", _field(node, "op", swapped()))
        case ast.BoolOp(op=joint):
            joined = ast.Or() if isinstance(joint, ast.And) else ast.And()
            yield Fault(node.lineno, f"{type(joint).__name__} → {type(joined).__name__}", _field(node, "op", joined))
        case ast.Constant(value=bool(truth)):
            yield Fault(node.lineno, f"{truth} → {not truth}", _field(node, "value", not truth))
        case ast.Constant(value=int(number)):
            yield Fault(node.lineno, f"{number} → {number + 1}", _field(node, "value", number + 1))
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield Fault(node.lineno, "condition negated", _field(node, "test", _negated(test)))


def _in_statements(node: ast.AST) -> Iterator[Fault]:
    if isinstance(node, ast.Return) and not (node.value is None or _is_none(node.value)):
        yield Fault(node.lineno, "returns None", _field(node, "value", ast.Constant(None)))
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.If | ast.For | ast.With | ast.match_case):
        return
    for at, each in enumerate(node.body):
        sets = isinstance(each, ast.Assign) and not isinstance(each.targets[0], ast.Name)
        acts = isinstance(each, ast.Expr) and not _is_text(each)
        if sets or acts or isinstance(each, ast.AugAssign | ast.Raise):
            yield Fault(each.lineno, f"deleted: {ast.unparse(each)[:60]}", _item(node.body, at, ast.Pass()))


def _negated(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return ast.UnaryOp(ast.Not(), test)


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _field(node: ast.AST, name: str, value: object) -> Callable[[], None]:
    return lambda: setattr(node, name, value)


def _item(items: list[ast.AST] | list[ast.stmt] | list[ast.cmpop], at: int, value: object) -> Callable[[], None]:
    return lambda: items.__setitem__(at, value)  # type: ignore[call-overload]


def mutants_of(target: str) -> list[Mutant]:
    """All mutants of a target."""
    paths = sorted(path for pattern in TARGETS[target][0] for path in ROOT.glob(pattern))
    return [
        Mutant(target, str(path.relative_to(ROOT)), number)
        for path in paths
        for number in range(len(faults_of(ast.parse(path.read_text()))))
    ]


def run_tests(copy: Path, target: str, *, names_to: Path | None = None) -> bool:
    """Whether the target's tests pass in the copy; in a child process that ends with them."""
    child = os.fork()
    if child == 0:
        _become_tests(copy, target, names_to)
    deadline = time.monotonic() + HANG_S * (5 if names_to else 1)
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _become_tests(copy: Path, target: str, names_to: Path | None) -> None:
    code = 1
    try:
        sys.dont_write_bytecode = names_to is None
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        os.chdir(copy)
        sys.path.insert(0, str(copy))
        import pytest  # noqa: PLC0415 - the parent imports libraries only once it knows which

        options = ("-x", "-q", "-m", "not soak", "--assert=plain", "-p", "no:cacheprovider", "-k", "not postgresql")
        options += (f"--basetemp={copy.parent / 'files'}",)
        for pattern in TARGETS[target][1]:
            code = pytest.main([*options, *sorted(str(path) for path in (copy / "tests").glob(pattern))])
            if code != 0:
                break
        if names_to is not None:
            names_to.write_text("\n".join(sorted(sys.modules)))
    finally:
        os._exit(int(code))


def _import_libraries(names: Sequence[str]) -> None:
    for name in names:
        if name.split(".")[0] not in _OURS:
            try:
                __import__(name)
            except ImportError:
                continue  # a module that a library made while it ran


def _fresh_copy(folder: Path) -> Path:
    hidden = shutil.ignore_patterns(".*", "__pycache__", "bench")
    return Path(shutil.copytree(ROOT, folder / "tree", symlinks=True, ignore=hidden))


def try_target(target: str, sample: Sequence[Mutant], copy: Path) -> list[tuple[Mutant, Fault]]:
    """Put each mutant of the sample into the copy, one at a time; returns the survivors."""
    modules = copy.parent / "modules.txt"
    if not run_tests(copy, target, names_to=modules):
        raise SystemExit(f"the tests of {target} fail without a fault")
    _import_libraries(modules.read_text().split("\n"))
    if not run_tests(copy, target):
        raise SystemExit(f"the tests of {target} fail without a fault where libraries are imported already")
    survivors = []
    for mutant in sample:
        path = copy / mutant.path
        source = path.read_text()
        tree = ast.parse(source)
        fault = faults_of(tree)[mutant.number]
        fault.put()
        path.write_text(ast.unparse(ast.fix_missing_locations(tree)))
        # The compiled file has the time and the size of the source, which a fault may leave as they were.
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()
        survives = run_tests(copy, target)
        path.write_text(source)
        print(f"{'SURVIVED' if survives else 'killed  '} {mutant.path}:{fault.line} {fault.words}", flush=True)
        if survives:
            survivors.append((mutant, fault))
    return survivors


def main() -> None:
    """Draw the sample over all targets together, so that each has the share of its size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], default=list(TARGETS))
    parser.add_argument("--sample", type=int, default=100, help="mutants of each target at most")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    os.nice(10)
    os.environ["CI"] = "true"  # Hypothesis draws the same examples each time
    tried = survived = 0
    for target in given.targets or TARGETS:
        mutants = mutants_of(target)
        chance = random.Random(given.seed)  # noqa: S311 - no secret
        sample = chance.sample(mutants, min(given.sample, len(mutants)))
        print(f"{target}: {len(sample)} of {len(mutants)} mutants, seed {given.seed}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            survivors = try_target(target, sample, _fresh_copy(Path(folder)))
        print(f"{target}: {len(sample) - len(survivors)} of {len(sample)} killed", flush=True)
        tried, survived = tried + len(sample), survived + len(survivors)
    print(f"all: {tried - survived} of {tried} killed ({(tried - survived) / max(1, tried):.0%})")


if __name__ == "__main__":
    main()
