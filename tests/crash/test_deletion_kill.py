"""A deletion of a thread killed at its points: the thread is whole or not found, and what is left goes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KILL_COUNT_MIN = 30


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'state.db'}"
    return str(request.getfixturevalue("postgres_url"))


def test_killed_anywhere_a_deletion_leaves_a_whole_thread_or_none(url: str) -> None:
    """After SIGKILL at any statement or commit, between batches too, a sweep or a second request removes every row."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.deletion_kill", url],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
    )
    assert run.returncode == 0, run.stderr

    said = [json.loads(line) for line in run.stdout.splitlines()]
    killed, undisturbed = said[:-1], said[-1]["end"]
    assert len(killed) >= KILL_COUNT_MIN
    assert (undisturbed["is_found"], undisturbed["rows"], undisturbed["unfinished"]) == (False, 0, 0)
    left = set()
    for each in killed:
        before, found, after = each["before"], each["found"], each["after"]
        # The key of its run is answered as before for as long as the thread is there, and names a new request then.
        assert each["asked"]["is_replayed"] == found["is_found"], each
        if found["is_found"]:
            assert (found["damages"], found["rows"], found["unfinished"]) == ([], before["rows"], 0), each
        else:
            left.add(found["rows"])
            assert (after["is_found"], after["rows"], after["unfinished"]) == (False, 0, 0), each
    # Some died between two batches.
    assert len(left) > 3, left
