"""The blocks of code in README and docs/, run as a reader would; docs/agents.md has test_installed.py."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.architecture.sources import ROOT
from tests.support.service import Service
from threadmark.testing import AgentSession, ScriptedModel, call

#: What the blocks say of the server of `make serve`.
SERVER, DATA_DIR = "http://127.0.0.1:8123", ".threadmark"
#: Blocks of these kinds are code. The first of README is commands of make, which CI itself gives.
CODE = ("sh", "shell", "python")


def blocks(page: str) -> list[tuple[str, str]]:
    """Kind and text of each block of code on a page."""
    found = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [(kind, text) for kind, text in found if kind in CODE]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """The server that README has the reader start."""
    with Service() as service:
        yield service


def test_no_page_has_code_that_is_not_run() -> None:
    """A new block of code wants a test that runs it."""
    pages = [path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))]

    assert {page: [kind for kind, _ in blocks(page)] for page in pages if blocks(page)} == {
        "README.md": ["sh", "sh", "python"],
        "docs/agents.md": ["python", "python", "python", "shell", "python"],
        "docs/tools.md": ["python"],
    }


def test_the_first_commands_are_those_of_make() -> None:
    """`make serve` and `make test`, which everything else relies on."""
    assert re.findall(r"^make (\w+)", blocks("README.md")[0][1], re.MULTILINE) == ["serve", "test"]


@pytest.mark.parametrize(("number", "said"), [(1, "event: messages"), (2, "Done.")], ids=["curl", "langgraph_sdk"])
def test_the_first_conversation_works(service: Service, tmp_path: Path, number: int, said: str) -> None:
    """Pasted as it stands, but for the port and the data directory of this server."""
    kind, text = blocks("README.md")[number]
    (tmp_path / DATA_DIR).symlink_to(service.data_dir)
    command = [sys.executable, "-c"] if kind == "python" else ["bash", "-euo", "pipefail", "-c"]
    run = subprocess.run(
        [*command, text.replace(SERVER, service.url)], cwd=tmp_path, check=False, capture_output=True, text=True
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert said in run.stdout


def test_the_tool_with_a_verifier_pays_once() -> None:
    """The registry of docs/tools.md, over a bank of the test's own."""

    class Bank:
        """An account, and what was paid."""

        def __init__(self) -> None:
            self.paid: dict[str, int] = {}

        async def knows(self, account: str) -> bool:
            return account == "ann"

        async def pay(self, account: str, amount_cents: int, *, reference: str) -> str:
            self.paid[reference] = amount_cents
            return f"r-{len(self.paid)}"

        async def find(self, reference: str) -> Any:
            return SimpleNamespace(receipt="r-1") if reference in self.paid else None

    ((_, text),) = blocks("docs/tools.md")
    bank = Bank()
    names: dict[str, Any] = {"bank": bank, "__name__": "page"}
    exec(compile(text, "docs/tools.md", "exec"), names)
    (clerk,) = names["registry"]

    async def story() -> str:
        model = ScriptedModel(call("pay", account="ann", amount_cents=4_200), "Paid.")
        async with AgentSession(clerk, model) as session:
            asked = await session.say("Pay Ann 42 euros.")
            (question,) = asked.questions
            assert bank.paid == {}
            return (await session.approve(question)).text

    assert asyncio.run(story()) == "Paid."
    assert list(bank.paid.values()) == [4_200]
