"""The commands around memory's index: rebuilt, compared, repaired, and left alone while a process has it."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.api import open_api
from threadmark.app.cli import main
from threadmark.memory import Draft, Recollection, Scope
from threadmark.workers.memory_resources import new_recollection
from threadmark.workers.settings.settings import Settings
from threadmark.workers.wiring import now_utc

Capture = pytest.CaptureFixture[str]
SCOPE = Scope(tenant_id="default", namespace=("users",))


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data directory of the commands, with three memories."""
    monkeypatch.setenv("THREADMARK_DATA_DIR", str(tmp_path))
    assert main(["migrate"]) == 0
    asyncio.run(fill(tmp_path))
    return tmp_path


async def fill(data_dir: Path) -> None:
    """Remember three sentences; nothing is indexed yet."""
    memory, _ = new_recollection(Settings.from_environment({"THREADMARK_DATA_DIR": str(data_dir)}), now_utc)
    drafts = [
        Draft(namespace=("users",), text=text, observed_at=datetime(2026, 1, 1, tzinfo=UTC)) for text in ("a", "b", "c")
    ]
    await memory.remember(drafts, scope=SCOPE, now=now_utc())
    await memory.close()


def run(capture: Capture, *argv: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    capture.readouterr()
    code = main(argv)
    captured = capture.readouterr()
    return code, captured.out, captured.err


def test_memory_and_its_index_are_compared_and_a_damaged_index_is_repaired(data_dir: Path, capsys: Capture) -> None:
    """What differs is named and counted; a repair makes them agree."""
    assert run(capsys, "verify", "memory")[:2] == (
        0,
        "space wordllama-1-256-t1-g1: 3 memories, 3 entries, 0 differ\n",
    )
    asyncio.run(damage(data_dir))

    code, out, _ = run(capsys, "verify", "memory")
    repaired, printed, _ = run(capsys, "verify", "memory", "--repair")

    assert (code, repaired) == (1, 0)
    assert "1 differ" in out
    assert "missing: " in out
    assert printed.splitlines()[-1].endswith("3 memories, 3 entries, 0 differ")


async def damage(data_dir: Path) -> None:
    """Take one entry out of the index."""
    memory, owned = new_recollection(Settings.from_environment({"THREADMARK_DATA_DIR": str(data_dir)}), now_utc)
    assert owned is not None
    await owned.take()
    await memory.take_up_index(now=now_utc())
    space = (await memory.verify()).space
    (first, *_) = await owned.digests(space, 0, 1)
    await owned.remove(space, [first[0]])
    await memory.close()


def test_the_index_is_built_anew(data_dir: Path, capsys: Capture) -> None:
    """A new space serves, and the old one is gone from the disk."""
    run(capsys, "verify", "memory")

    code, out, _ = run(capsys, "reindex")

    assert (code, out) == (0, "the index is rebuilt: space wordllama-1-256-t1-g2, 3 entries\n")
    assert [each.name for each in (data_dir / "memory-index").iterdir()] == ["wordllama-1-256-t1-g2"]
    assert run(capsys, "verify", "memory")[0] == 0


async def test_the_index_of_a_running_server_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command names the server that owns it and what to do, and changes nothing."""
    monkeypatch.setenv("THREADMARK_DATA_DIR", str(tmp_path))
    async with open_api(tmp_path) as api:
        exit_code = await asyncio.to_thread(main, ["reindex"])
        agreement = await verified(api.resources.wired.recollection)

    assert exit_code == 2
    assert agreement


async def verified(memory: Recollection) -> bool:
    """Whether database and index agree."""
    return (await memory.verify()).agrees
