"""Memory killed at its points of writing, indexing and erasing: afterwards database and index agree."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECALLED = ["likes tea", "lives in Bergen"]


@pytest.mark.parametrize(
    ("first", "step"), [(3, 9), *(pytest.param(first, 9, marks=pytest.mark.soak) for first in (1, 2, 4, 5, 6, 7, 8, 9))]
)
def test_killed_anywhere_it_recovers(first: int, step: int, tmp_path: Path) -> None:
    """After SIGKILL at any point and a retry of the story, memory holds each statement of an undisturbed one once."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.memory_kill", str(tmp_path / "life"), str(first), str(step)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr

    *killed, last = [json.loads(line) for line in run.stdout.splitlines()]
    undisturbed = last["end"]

    assert undisturbed["agrees"]
    assert undisturbed["recalled"] == RECALLED
    assert len(killed) > 100 // step
    for each in killed:
        found = each["recovered"]
        assert found.get("agrees"), each
        assert (found["rows"], found["recalled"]) == (undisturbed["rows"], RECALLED), each
