"""Everything that is installed is below one name, and no module is loaded under two."""

import subprocess
import sys
import zipfile
from pathlib import Path

from tests.architecture.sources import ONE_NAME, PACKAGES, PROGRAMS, ROOT, imported_modules, sources
from tests.support.installed import build_wheel

#: The folders that are reached through the links in `threadmark/` alone.
LINKED = (*PACKAGES, "examples")

EVERYTHING = """
import collections, os, pkgutil, sys
import threadmark
for module in pkgutil.walk_packages(threadmark.__path__, "threadmark."):
    if not module.name.endswith((".env", ".__main__", ".workers.main")) and ".versions." not in module.name:
        __import__(module.name)
files = collections.defaultdict(set)
for name, module in list(sys.modules.items()):
    if getattr(module, "__file__", None):
        files[os.path.realpath(module.__file__)].add(module.__spec__.name if module.__spec__ else name)
double = [names for names in map(sorted, files.values()) if len(names) > 1 and "threadmark" in str(names)]
print(sorted(double))
print(sorted({name.partition(".")[0] for name in sys.modules} & set(%r)))
print(sum(name.startswith("threadmark.") for name in sys.modules))
"""


def test_the_links_lead_to_the_folders() -> None:
    """Each is relative, so that it is right in every clone."""
    assert {name: (ROOT / ONE_NAME / name).readlink() for name in LINKED} == {
        name: Path("..") / name for name in LINKED
    }


def test_nothing_imports_a_folder_by_its_bare_name() -> None:
    """`import state` would load a second copy of `threadmark.state`."""
    findings = [
        file.at(node, f"imports {module}")
        for file in sources(*PROGRAMS, "tests")
        for node, module in imported_modules(file.tree)
        if module.partition(".")[0] in LINKED
    ]

    assert not findings, "\n".join(findings)


def test_no_module_is_loaded_under_two_names() -> None:
    """With everything imported, in this process and in a fresh one."""
    assert {name.partition(".")[0] for name in sys.modules} & set(LINKED) == set()

    run = [sys.executable, "-c", EVERYTHING % (LINKED,)]
    double, bare, count = subprocess.run(run, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    assert (double, bare) == ("[]", "[]")
    assert int(count) > 300


def test_a_wheel_holds_one_top_level_package(tmp_path: Path) -> None:
    """A user's own `app/`, `state.py` or `memory.py` stays the user's."""
    names = zipfile.ZipFile(build_wheel(tmp_path)).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {ONE_NAME}
    assert {f"{ONE_NAME}/py.typed", f"{ONE_NAME}/state/migrations/env.py"} <= set(names)
    assert {name.split("/")[1] for name in names if name.startswith(f"{ONE_NAME}/") and name.count("/") > 1} == {
        *LINKED,
        "db",
        "testing",
    }
