"""Lock files of the workers of one machine: each process looks at those of the others."""

import time
from pathlib import Path

import pytest

from threadmark.state import FileLocks


def test_a_process_looks_at_the_others_alone(tmp_path: Path) -> None:
    """Its own workers are no news; another's is held until that process lets go of it, and then there is no file."""
    mine, other = FileLocks(tmp_path), FileLocks(tmp_path)
    assert mine.survey() == {}
    mine.hold("worker-1")
    other.hold("worker-2")

    assert (mine.survey(), other.survey()) == ({"worker-2": False}, {"worker-1": False})
    assert (mine.dead(), other.dead()) == ([], [])

    other.release("worker-2")
    assert mine.survey() == {}
    mine.release("worker-1")


def test_a_file_without_a_holder_is_a_dead_worker_until_it_is_forgotten(tmp_path: Path) -> None:
    """What a killed process leaves. A name that no worker has is no worker's."""
    (tmp_path / "worker-1.lock").touch()
    (tmp_path / "not a worker.lock").touch()
    (tmp_path / "worker-2.new").touch()
    locks = FileLocks(tmp_path)

    assert locks.survey() == {"worker-1": True}
    assert locks.dead() == ["worker-1"]

    locks.forget("worker-1")
    assert locks.dead() == []


def test_the_file_of_a_worker_that_lives_is_not_forgotten(tmp_path: Path) -> None:
    """A process that was taken for dead keeps its own sign of life."""
    mine, other = FileLocks(tmp_path), FileLocks(tmp_path)
    mine.hold("worker-1")

    mine.forget("worker-1")

    assert other.survey() == {"worker-1": False}
    mine.release("worker-1")


@pytest.mark.parametrize(("later_s", "counts"), [(60.0, True), (-60.0, False)])
def test_a_worker_is_counted_on_until_the_instant_that_it_wrote(tmp_path: Path, later_s: float, counts: bool) -> None:
    """An instant that has passed is no sign of life, though the lock is held; nor is a beat without a lock."""
    mine, other = FileLocks(tmp_path), FileLocks(tmp_path)
    assert mine.beat("worker-1", time.monotonic() + later_s) is False
    mine.hold("worker-1")

    assert mine.beat("worker-1", time.monotonic() + later_s) is True

    assert other.beating(["worker-1", "worker-2"]) == (["worker-1"] if counts else [])
    mine.release("worker-1")
    assert other.beating(["worker-1"]) == []
