"""Work beside the event loop has a pool of its own purpose, never the executor that everything shares."""

import ast

from tests.architecture.sources import PACKAGES, Source, dotted, snippet, sources


def shared_executor(file: Source) -> list[str]:
    """Places that put work into asyncio's default executor."""
    found: list[str] = []
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Attribute) and dotted(node) == "asyncio.to_thread":
            found.append(file.at(node, "asyncio.to_thread"))
        if isinstance(node, ast.ImportFrom) and any(each.name == "to_thread" for each in node.names):
            found.append(file.at(node, "import of to_thread"))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            first = node.args[0] if node.args else None
            is_default = isinstance(first, ast.Constant) and first.value is None
            if node.func.attr == "set_default_executor" or (node.func.attr == "run_in_executor" and is_default):
                found.append(file.at(node, node.func.attr))
    return found


def test_nothing_waits_in_an_executor_that_everything_shares() -> None:
    """Twelve compactions once filled it, and the renewal of the lease stood behind them."""
    findings = [finding for file in sources(*PACKAGES) for finding in shared_executor(file)]

    assert not findings, "\n".join(findings)


def test_the_rule_sees_every_way_into_it() -> None:
    """As an attribute, by import, by handing it on, and by the loop's own call."""
    file = snippet(
        "from asyncio import to_thread\n"
        "asyncio.to_thread(work)\n"
        "push(asyncio.to_thread, work)\n"
        "loop.run_in_executor(None, work)\n"
        "loop.set_default_executor(pool)\n"
        "loop.run_in_executor(pool, work)\n"
    )

    assert sorted(finding.split(":")[1] for finding in shared_executor(file)) == ["1", "2", "3", "4", "5"]


#: Where threads are made: the pools themselves, and the one that looks for dead workers, which serves no tenant.
MAKES_THREADS = {"threadmark/db/execution/pools.py", "workers/fleet/dead_workers.py"}


def test_work_of_tenants_waits_in_pools_in_which_they_take_turns() -> None:
    """In a plain executor one tenant's thousand texts stand before the recall of another."""
    found = {
        file.name
        for file in sources(*PACKAGES, "threadmark")
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "ThreadPoolExecutor"
    }

    assert found == MAKES_THREADS
