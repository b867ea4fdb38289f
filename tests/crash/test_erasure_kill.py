"""An erasure killed at its points: each ledger verifies, its counts are right, and the next erasure leaves no word."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KILL_COUNT_MIN = 10


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'state.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.mark.parametrize(("first", "step"), [(3, 5), pytest.param(1, 1, marks=pytest.mark.soak)])
def test_killed_anywhere_an_erasure_is_finished_by_the_next(first: int, step: int, url: str) -> None:
    """Killed by SIGKILL at a statement or a commit, between two batches too."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.erasure_kill", url, str(first), str(step)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600 if step > 1 else 3_600,
    )
    assert run.returncode == 0, run.stderr

    said = [json.loads(line) for line in run.stdout.splitlines()]
    killed, last = said[:-1], said[-1]
    assert len(killed) >= KILL_COUNT_MIN
    assert "compaction_row" in last["talked"]["having"]
    assert last["end"]["having"] == []
    having = set()
    for each in killed:
        having.add(tuple(each["found"]["having"]))
        for looked in (each["found"], each["again"]):
            assert set(looked["damages"]) == {None}, each
            assert set(looked["is_counted"]) == {True}, each
        assert each["again"]["having"] == [], each
    # Some died when a part of the words was gone.
    assert len(having) > 2, having
