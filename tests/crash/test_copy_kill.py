"""A copy of a thread killed at its points: there is a whole copy or none, and a sweep leaves nothing else."""

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


def test_killed_anywhere_a_copy_is_whole_or_not_there(url: str) -> None:
    """After SIGKILL at any statement or commit, between batches too, a second attempt makes a whole copy."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.copy_kill", url],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr

    said = [json.loads(line) for line in run.stdout.splitlines()]
    killed, (undisturbed,) = said[:-1], [each["end"] for each in said[-1:]]
    assert len(killed) >= KILL_COUNT_MIN
    assert (undisturbed["copies"], undisturbed["whole"], undisturbed["hidden"]) == (1, [True], 0)
    hidden = set()
    for each in killed:
        found, swept, again = each["found"], each["swept"], each["again"]
        hidden.add(found["hidden"])
        assert all(looked["is_listed_alike"] for looked in (found, swept, again)), each
        assert all(looked["damages"] == [] for looked in (found, swept, again)), each
        assert all(all(looked["whole"]) for looked in (found, swept, again)), each
        assert found["copies"] == 0 or found["hidden"] == 0, each
        assert swept["hidden"] == again["hidden"] == 0, each
        assert again["copies"] == found["copies"] + 1, each
    # Some died between two batches.
    assert len(hidden) > 3, hidden
