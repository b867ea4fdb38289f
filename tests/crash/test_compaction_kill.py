"""A compaction killed at its points: afterwards the thread has its old view or its new one, and nothing else."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
KILL_COUNT_MIN = 15


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'state.db'}"
    return str(request.getfixturevalue("postgres_url"))


ONE_ROUND = [(2, 4, 1), *(pytest.param(first, 4, 1, marks=pytest.mark.soak) for first in (1, 3, 4))]
#: Every point fifty times: about an hour for each database.
FIFTY_ROUNDS = pytest.param(1, 1, 50, marks=pytest.mark.soak)


@pytest.mark.parametrize(("first", "step", "rounds"), [*ONE_ROUND, FIFTY_ROUNDS])
def test_killed_anywhere_a_compaction_leaves_the_old_view_or_the_new_one(
    first: int, step: int, rounds: int, url: str
) -> None:
    """Killed by SIGKILL at a point; who performs it again commits once, and asks for each chunk once (G4, F26)."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.compaction_kill", url, str(first), str(step), str(rounds)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=900 * rounds,
    )
    assert run.returncode == 0, run.stderr

    said = [json.loads(line) for line in run.stdout.splitlines()]
    ends = [each["end"] for each in said if "end" in each]
    killed = [each for each in said if "end" not in each]
    assert len(ends) == rounds
    assert len(killed) >= KILL_COUNT_MIN * rounds
    judge(killed, ends[0])


def judge(killed: list[dict[str, Any]], undisturbed: dict[str, Any]) -> None:
    """Old or new, whole, and nothing lost, doubled or asked in vain."""
    assert (undisturbed["statuses"], undisturbed["ledgers"]) == (["committed"], 1), undisturbed
    outcomes, ahead = set(), set()
    for each in killed:
        found, recovered = each["found"], each["recovered"]
        is_old = found["hash"] == each["before"]["hash"]
        outcomes.add(is_old)
        ahead.add(found["ahead"])
        assert found["ahead"] == 0 or is_old, each
        assert recovered["ahead"] == 0, each
        assert found["views"] == found["ledgers"] == (0 if is_old else 1), each
        assert is_old or found["statuses"] == ["committed"], each
        for seen in (found, recovered):
            assert (seen["rows"], seen["damages"]) == (True, []), each
            assert seen["journaled"] == seen["views"], each
        assert (recovered["statuses"], recovered["views"], recovered["ledgers"]) == (["committed"], 1, 1), each
        # A chunk whose reply was on its way when the process died is asked again; no other is.
        assert recovered["asked"] <= undisturbed["asked"], each
    assert outcomes == {True, False}
    # Some died between two batches, and some behind the last one.
    assert len(ahead) > 2, ahead
