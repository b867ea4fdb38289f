"""The analysis of a thread killed at its points: what was kept is whole, and the next one does the rest."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KILL_COUNT_MIN = 2


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'state.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.mark.parametrize(
    ("first", "step"),
    [(4, 12), *(pytest.param(first, 12, marks=pytest.mark.soak) for first in (1, 2, 3, *range(5, 13)))],
)
def test_killed_anywhere_an_analysis_is_carried_on(first: int, step: int, url: str) -> None:
    """Killed by SIGKILL at a point: what is kept is not analysed again, and a compaction finds everything."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.learning_kill", url, str(first), str(step)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr

    *killed, last = [json.loads(line) for line in run.stdout.splitlines()]
    total = last["end"]["total"]
    assert (last["end"]["analysed"], last["end"]["known"]) == (total, 0)
    assert len(killed) >= KILL_COUNT_MIN
    counts = [each["found"]["kept"] for each in killed]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1] <= total
    for each in killed:
        found, after = each["found"], each["recovered"]
        assert (after["known"], after["analysed"]) == (found["kept"], total - found["kept"]), each
        assert (after["kept"], after["status"]) == (total, "committed"), each
