"""Rules for files as such: they know no machine, and they stay short enough to be read."""

import re

from tests.architecture.sources import PROGRAMS, ROOT, sources, tracked_files

LINE_COUNT_MAX = 300

FOREIGN_FOLDERS = re.compile(rb"(?<![\w.-])/(?:work|root|tmp/plan)/")


def test_no_file_names_a_folder_of_one_machine() -> None:
    """What a file says must be true on every machine: paths are relative, or come from a setting."""
    findings = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked_files()
        for number, line in enumerate(path.read_bytes().splitlines(), start=1)
        if FOREIGN_FOLDERS.search(line)
    ]

    assert not findings, "\n".join(findings)


def test_a_module_is_read_in_one_sitting() -> None:
    """A module over 300 lines has a second noun in it, which wants a file of its own.

    Imports are not counted. Migrations grow as they must, and a package's `__init__` is a list of names and
    nothing else.
    """
    files = [
        file
        for file in sources(*PROGRAMS, "tests")
        if "/migrations/" not in file.name and not file.name.endswith("/__init__.py")
    ]

    assert sorted(file.name for file in files if file.said_line_count > LINE_COUNT_MAX) == []
