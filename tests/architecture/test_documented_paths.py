"""Every path of the repository that a document names exists."""

import re
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

DOCUMENTS = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *ROOT.glob("bench/*.md")]
)
#: In backticks, with a folder of the repository at its head. Patterns and test names behind `::` are cut off.
_PATH = re.compile(
    r"`((?:app|bench|compaction|deploy|docs|examples|memory|scripts|state|tests|threadmark|workers)/[\w./-]+)(?:`|::)"
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_named_path_exists(document: Path) -> None:
    """A reader who opens a named file finds it."""
    named = set(_PATH.findall(document.read_text(encoding="utf-8")))

    assert sorted(each for each in named if not (ROOT / each).exists()) == []
