"""An import killed anywhere: afterwards all of it is there or nothing, and the same lines make it whole."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("first", "step"), [(2, 9), *(pytest.param(first, 9, marks=pytest.mark.soak) for first in (1, 3, 4, 5, 6, 7, 8, 9))]
)
def test_killed_anywhere_an_import_is_whole_or_has_not_been(first: int, step: int, tmp_path: Path) -> None:
    """The sweep a minute later leaves no row of one that was not published, and the index knows one that was."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.import_kill", str(tmp_path), str(first), str(step)],
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
    assert undisturbed["is_equal"]
    assert (undisturbed["swept"], undisturbed["seen"]) == ({}, [])
    assert len(killed) > 100 // step
    whole = 0
    for each in killed:
        found = each["recovered"]
        assert "error" not in found, each
        if found["seen"]:
            whole += 1
            assert found["swept"] == undisturbed["rows"], each
            assert found["recalled_first"] == undisturbed["recalled"], each
        else:
            assert found["swept"] == {}, each
        assert found["agrees"], each
        assert found["is_equal"], each
        assert (found["rows"], found["recalled"]) == (undisturbed["rows"], undisturbed["recalled"]), each
    assert 0 < whole < len(killed)
