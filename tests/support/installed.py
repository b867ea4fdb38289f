"""The package as a user has it: a wheel, installed beside a project that has folders with the same names as ours."""

import importlib.util
import os
import subprocess
import sys
import venv
from pathlib import Path

from tests.architecture.sources import ROOT
from tests.support.daemon import Daemon
from tests.support.service import Service

__all__ = ["InstalledService", "build_wheel", "environment_of", "install"]


def build_wheel(folder: Path) -> Path:
    """Build the wheel into a folder: with hatchling where it is installed, else as pip does, which fetches it."""
    if importlib.util.find_spec("hatchling"):
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    else:
        build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), "."]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(folder: Path) -> Path:
    """Build the wheel and install it, without its dependencies, into a folder for PYTHONPATH."""
    site = folder / "site"
    wheel = build_wheel(folder)
    # The environment of the tests has no pip when uv made it; a fresh one has the pip that Python ships.
    with_pip = folder / "pip"
    venv.create(with_pip, with_pip=True)
    pip = [str(with_pip / "bin" / "python"), "-m", "pip", "--python", sys.executable]
    put = [*pip, "install", "-q", "--no-deps", "--no-index", "--target", str(site), str(wheel)]
    subprocess.run(put, check=True, capture_output=True)
    return site


def environment_of(site: Path) -> dict[str, str]:
    """The variables of a shell in which the installed package is the one that is found."""
    path = os.pathsep.join([str(site / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {"PYTHONPATH": str(site), "PATH": path}


class InstalledService(Service):
    """What a shell script that ends in `threadmark serve` starts in a project's folder."""

    def __init__(self, site: Path, project: Path, script: str) -> None:
        super().__init__()
        self._site = site
        self._project = project
        self._script = script

    def spawn(self) -> Daemon:
        """Run the script; the server takes the place of its shell."""
        settings = {
            **environment_of(self._site),
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "THREADMARK_DATA_DIR": str(self.data_dir),
        }
        script = self._script.replace("threadmark serve", "exec threadmark serve")
        command = ["/usr/bin/env", "-C", str(self._project), *(f"{name}={value}" for name, value in settings.items())]
        return Daemon(
            [*command, "bash", "-euc", script], log=self.folder / "server.log", death_signal=self.death_signal
        )
