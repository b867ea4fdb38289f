"""What `from threadmark import …` offers: all that authors of agents need, typed, and what examples and pages use."""

import os
import re
import subprocess
import sys
from pathlib import Path

import threadmark
from tests.architecture.sources import ROOT, imported_modules, source, sources
from tests.architecture.test_packages import public_names, sorting_key

AGENTS = '''
from collections.abc import Mapping
from typing import Any

from threadmark import (
    DID_NOT_HAPPEN, JSON, UNKNOWN, ChatAgent, CompactionPolicy, Effect, Limits, MemoryPolicy, NonRetryable, Policy,
    Registry, RetryAfter, RetryPolicy, SummariserKind, Tool, ToolContext, Trust, recall_dropped, tool,
)


async def verify_payment(arguments: Mapping[str, Any], context: ToolContext) -> Any:
    """Ask the bank."""
    if arguments["account"] == "slow":
        return UNKNOWN
    return DID_NOT_HAPPEN


@tool(effect=Effect.ONCE, needs_approval=True, retry=RetryPolicy(attempt_max=2), verify=verify_payment)
async def pay(account: str, amount_cents: int, context: ToolContext) -> dict[str, JSON]:
    """Pay."""
    if not account:
        raise NonRetryable("no account")
    if amount_cents < 0:
        raise RetryAfter(2.0)
    context.emit({"paying": amount_cents})
    return {"key": context.idempotency_key, "at": context.now().isoformat()}


tools: list[Tool] = [pay, recall_dropped]
registry = Registry([
    ChatAgent(
        name="clerk",
        tools=tools,
        limits=Limits(step_count_max=10),
        memory=MemoryPolicy(trust=Trust.USER),
        compaction=CompactionPolicy(policy=Policy(keep_last_turns=2), summariser=SummariserKind.EXTRACTIVE),
    )
])
'''


def is_public(module: str) -> bool:
    """Whether an example may import it: a name of the public face, a tool of its tests, or a neighbour."""
    own = module.removeprefix("threadmark.").partition(".")[0]
    return own in {*threadmark.__all__, "testing", "examples"}


def test_the_names_are_listed_sorted_and_there() -> None:
    """`__all__` is what there is, and an unknown name is an ImportError as anywhere."""
    names = public_names(source(ROOT / "threadmark" / "__init__.py").tree)

    assert names == sorted(set(threadmark.__all__), key=sorting_key)
    assert [name for name in names if not hasattr(threadmark, name)] == []
    assert set(names) <= set(dir(threadmark))


def test_examples_use_the_public_face_alone() -> None:
    """Who copies an example copies nothing that may change."""
    demonstration = "examples/refund/demo/"  # it drives a server from outside
    findings = [
        file.at(node, f"imports {module}")
        for file in sources("examples")
        if not file.name.startswith(demonstration)
        for node, module in imported_modules(file.tree)
        if module.startswith("threadmark.") and not is_public(module)
    ]

    assert not findings, "\n".join(findings)


def test_pages_use_the_public_face_alone() -> None:
    """A page for authors of agents names no module of the server in an import."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    findings = [
        f"{page.name}: {line.strip()}"
        for page in pages
        for line in page.read_text(encoding="utf-8").splitlines()
        if re.match(r"\s*(from|import) threadmark[. ]", line)
        and not re.match(r"\s*from threadmark(\.testing)? import ", line)
    ]

    assert not findings, "\n".join(findings)


def test_a_users_agents_are_typed_strictly(tmp_path: Path) -> None:
    """`mypy --strict` on a file that uses every kind of name finds nothing, and finds what is wrong."""
    (tmp_path / "agents.py").write_text(AGENTS)
    (tmp_path / "wrong.py").write_text(
        "from threadmark import ChatAgent, Limits, nothing\nChatAgent(name=1, limits=Limits(step_count_max='x'))\n"
    )

    assert mypy(tmp_path, "agents.py") == (0, "Success: no issues found in 1 source file")
    code, found = mypy(tmp_path, "wrong.py")
    assert code == 1
    assert re.findall(r"\[([a-z-]+)\]", found) == ["attr-defined", "arg-type", "arg-type"]


def mypy(folder: Path, file: str) -> tuple[int, str]:
    """The exit code and the output of `mypy --strict` in a folder that has the package on its path."""
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", "cache", file]
    environment = os.environ | {"MYPYPATH": str(ROOT)}
    run = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)
    return run.returncode, run.stdout.strip()
