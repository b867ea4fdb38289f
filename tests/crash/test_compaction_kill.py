"""A compaction killed at its points: afterwards the thread has its old view or its new one, and nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KILL_COUNT_MIN = 15


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'state.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.mark.parametrize(
    ("first", "step"), [(2, 4), *(pytest.param(first, 4, marks=pytest.mark.soak) for first in (1, 3, 4))]
)
def test_killed_anywhere_a_compaction_leaves_the_old_view_or_the_new_one(first: int, step: int, url: str) -> None:
    """Killed by SIGKILL at a point; whoever performs the order again commits once, and asks for each chunk once."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.compaction_kill", url, str(first), str(step)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert run.returncode == 0, run.stderr

    *killed, last = [json.loads(line) for line in run.stdout.splitlines()]
    undisturbed = last["end"]
    assert (undisturbed["statuses"], undisturbed["ledgers"]) == (["committed"], 1), undisturbed

    assert len(killed) >= KILL_COUNT_MIN
    outcomes = set()
    for each in killed:
        found, recovered = each["found"], each["recovered"]
        is_old = found["hash"] == each["before"]["hash"]
        outcomes.add(is_old)
        assert found["views"] == found["ledgers"] == (0 if is_old else 1), each
        assert is_old or found["statuses"] == ["committed"], each
        for seen in (found, recovered):
            assert (seen["rows"], seen["damages"]) == (True, []), each
            assert seen["told"] == seen["views"], each
        assert (recovered["statuses"], recovered["views"], recovered["ledgers"]) == (["committed"], 1, 1), each
        # A chunk whose reply was on its way when the process died is asked again; no other is.
        assert recovered["asked"] <= undisturbed["asked"], each
    assert outcomes == {True, False}
