"""The SQL of a claim and of an append, as a reviewer reads it."""

import pytest

from tests.replay.golden_sql import FOLDER, golden_sql


@pytest.mark.parametrize("name", sorted(golden_sql()))
def test_a_hot_statement_changes_only_in_sight(name: str) -> None:
    """A change to one shows in the diff what the databases will get; `python -m tests.replay.golden_sql`."""
    assert golden_sql()[name] == (FOLDER / name).read_text()


def test_every_file_is_one_of_a_path() -> None:
    """None is left over from a path that is gone."""
    assert {each.name for each in FOLDER.iterdir()} == set(golden_sql())
