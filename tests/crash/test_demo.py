"""The demonstration as a user runs it: it ends well, says so, and leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.daemon import Identity, launched
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
DEMO_S_MAX = 180
PROCESS = re.compile(r"as process (\d+)")


@contextmanager
def _demo(folder: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """The demonstration, writing to `folder/screen`, with its own files in `folder/tmp`."""
    (folder / "tmp").mkdir()
    command = launched(
        [sys.executable, "-m", "threadmark.examples.refund.demo", *arguments], Identity.own(), signal.SIGTERM
    )
    with (folder / "screen").open("wb") as screen:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(folder / "tmp")},
            stdin=subprocess.DEVNULL,
            stdout=screen,
            stderr=subprocess.STDOUT,
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=DEMO_S_MAX)


def _screen(folder: Path) -> str:
    return (folder / "screen").read_text()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_demonstration_ends_well_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """Killed twice, it goes on twice, pays once, accounts for every step, and says that all promises held."""
    with _demo(tmp_path, "--doubt", "--fast") as process:
        code = process.wait(timeout=DEMO_S_MAX)

    said = _screen(tmp_path)
    assert (code, "OK:" in said) == (0, True), said
    assert re.search(r"email_customer +keyed +1:A 2:B +B +2", said), said
    assert re.search(r"refund +once +1:B +key:\w+ +1", said), said
    assert "\x1b" not in said, "colours are for terminals"
    pids = [int(pid) for pid in PROCESS.findall(said)]
    assert len(pids) == 3
    assert not any(map(_is_alive, pids))
    assert list((tmp_path / "tmp").iterdir()) == []


async def test_a_demonstration_that_is_left_takes_its_server_along(tmp_path: Path) -> None:
    """Stopped in the middle, it leaves no process and no file behind."""
    with _demo(tmp_path) as process:
        await wait_until(lambda: PROCESS.search(_screen(tmp_path)), description="the server", timeout_s=DEMO_S_MAX)
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=DEMO_S_MAX)

    (pid,) = PROCESS.findall(_screen(tmp_path))
    assert code == 130
    assert not _is_alive(int(pid))
    assert list((tmp_path / "tmp").iterdir()) == []
