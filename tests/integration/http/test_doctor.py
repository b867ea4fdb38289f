"""`threadmark doctor` before servers that answer or refuse, on disks that are full, and in folders that are closed."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.daemon import unavailable
from threadmark.app.cli import main
from threadmark.app.commands import doctor_parts

Capture = pytest.CaptureFixture[str]

KEY = "sk-right"
THREADMARK = [sys.executable, "-m", "threadmark.app.cli"]
DOCTOR = [*THREADMARK, "doctor"]
DOCTOR_S_MAX = 60
DISK_MIB = 8


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory of the test's own, and no variable of the machine's that the doctor would act on."""
    path = tmp_path / "data"
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "THREADMARK_MODEL", "THREADMARK_QDRANT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("THREADMARK_DATA_DIR", str(path))
    monkeypatch.setenv("PORT", "0")
    return path


class Guarded(BaseHTTPRequestHandler):
    """Lists models and collections to a caller with the key, in either of the two headers; knows nothing else."""

    def do_GET(self) -> None:
        """Answer as the servers do that the doctor asks."""
        keys = (self.headers.get("authorization"), self.headers.get("api-key"))
        if not {f"Bearer {KEY}", KEY} & set(keys):
            self._answer(401, b'{"error": "Incorrect API key provided"}')
        elif self.path in {"/v1/models", "/collections"}:
            self._answer(200, b'{"data": [], "result": {"collections": []}, "status": "ok"}')
        else:
            self._answer(int(self.path.split("/")[1]) if self.path[1:4].isdigit() else 404, b"{}")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the output of these tests is the doctor's."""

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def url() -> Iterator[str]:
    """A server on loopback that asks for the key."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Guarded) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


def examine(capture: Capture) -> tuple[int, list[str]]:
    """The doctor's exit code and its lines."""
    code = main(["doctor"])
    return code, capture.readouterr().out.splitlines()


def test_a_model_and_an_index_that_answer_are_well(url: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is asked with its own key."""
    monkeypatch.setenv("THREADMARK_MODEL", "large-1")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("THREADMARK_QDRANT_URL", url)
    monkeypatch.setenv("THREADMARK_QDRANT_API_KEY", KEY)

    code, lines = examine(capsys)

    assert code == 0, lines
    assert {"ok  the model's server answers", "ok  Qdrant answers"} <= set(lines)


def test_a_model_server_without_a_list_of_models_is_well(
    url: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not each server of models lists them; it has been reached, and that is what was asked."""
    monkeypatch.setenv("THREADMARK_MODEL", "large-1")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/elsewhere")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    code, lines = examine(capsys)

    assert (code, "ok  the model's server answers" in lines) == (0, True), lines


def test_refused_keys_are_named_and_not_shown(url: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence says whose key it is and where it was refused; the key itself stays where it is."""
    monkeypatch.setenv("THREADMARK_MODEL", "large-1")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong")
    monkeypatch.setenv("THREADMARK_QDRANT_URL", url)
    monkeypatch.setenv("THREADMARK_QDRANT_API_KEY", "also-wrong")

    code, lines = examine(capsys)

    assert code == 1
    assert [line for line in lines if line.startswith("!!  ")] == [
        f"!!  THREADMARK_QDRANT_API_KEY: Qdrant answers at '{url}/collections' and refuses the key (401)",
        f"!!  OPENAI_API_KEY: the model's server answers at '{url}/v1/models' and refuses the key (401)",
    ]
    assert not any("wrong" in line for line in lines)


def test_servers_that_answer_with_an_error_are_not_well(
    url: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is starting or broken answers, and cannot be used; an index that lists nothing is no index."""
    monkeypatch.setenv("THREADMARK_MODEL", "large-1")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/503")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("THREADMARK_QDRANT_URL", f"{url}/elsewhere")
    monkeypatch.setenv("THREADMARK_QDRANT_API_KEY", KEY)

    code, lines = examine(capsys)

    assert code == 1
    assert [line for line in lines if line.startswith("!!  ")] == [
        f"!!  THREADMARK_QDRANT_URL: Qdrant answered 404 at '{url}/elsewhere/collections'",
        f"!!  OPENAI_BASE_URL: the model's server answered 503 at '{url}/503/models'",
    ]


def test_little_room_is_found(capsys: Capture, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the machine's disk has less than is wanted, the sentence says how much there is and how much is wanted."""
    monkeypatch.setattr(doctor_parts, "FREE_BYTES_MIN", shutil.disk_usage("/").total * 1_000)

    code, lines = examine(capsys)

    wanted = f"less than {doctor_parts.FREE_BYTES_MIN // 2**20} MiB are soon filled"
    assert code == 1
    (line,) = [each for each in lines if each.startswith("!!  ")]
    assert f"MiB are free on the disk of {data_dir}, and {wanted}" in line


def test_each_disk_that_is_written_to_is_looked_at(tmp_path: Path, data_dir: Path) -> None:
    """A small disk under the memory database alone: that disk is named, and not the one of the data directory."""
    small = tmp_path / "small"
    small.mkdir()
    within = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    mount = f'mount -t tmpfs -o size={DISK_MIB}m,mode=700 tmpfs "$0" && exec "$@"'
    if shutil.which("unshare") is None or _run([*within, "sh", "-c", mount, str(small), "true"], {}).returncode:
        unavailable("this user may mount no file system of its own")

    found = _run(
        [*within, "sh", "-c", mount, str(small), *DOCTOR],
        {"THREADMARK_MEMORY_DATABASE_URL": f"sqlite:///{small}/memory.db"},
    )

    lines = found.stdout.splitlines()
    assert found.returncode == 1, found.stderr
    (line,) = [each for each in lines if each.startswith("!!  ")]
    assert line.startswith(f"!!  {DISK_MIB} MiB are free on the disk of {small}, and less than 512 MiB")
    assert any(each.startswith("ok  ") and each.endswith(f"on the disk of {data_dir}") for each in lines)


@contextmanager
def closed(path: Path, mode: int) -> Iterator[None]:
    """The mode, for as long as the block lasts: a closed folder could not be removed after the test."""
    path.chmod(mode)
    try:
        yield
    finally:
        path.chmod(0o700)


def _run(command: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=DOCTOR_S_MAX, check=False
    )


def as_anyone(environment: Mapping[str, str], command: str = "doctor") -> subprocess.CompletedProcess[str]:
    """A command in a process that folders can be closed to: of root without the right to pass over permissions."""
    if os.geteuid() != 0:
        return _run([*THREADMARK, command], environment)
    if shutil.which("setpriv") is None:
        unavailable("root passes over permissions, and there is no setpriv to give that up")
    weaker = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    return _run([*weaker, *THREADMARK, command], environment)


@pytest.mark.parametrize("mode", [0o500, 0o600, 0o000], ids=["read only", "no entry", "closed"])
@pytest.mark.parametrize("is_made", [True, False], ids=["there", "not yet there"])
def test_a_data_directory_that_this_user_may_not_write_is_found(tmp_path: Path, mode: int, is_made: bool) -> None:
    """The directory itself, or the one in which the first start would make it."""
    shut = tmp_path / "shut"
    path = shut if is_made else shut / "inner" / "data"
    shut.mkdir()
    with closed(shut, mode):
        found = as_anyone({"THREADMARK_DATA_DIR": str(path)})
        started = as_anyone({"THREADMARK_DATA_DIR": str(path)}, "serve")

    wrong = [each for each in found.stdout.splitlines() if each.startswith("!!  ")]
    assert (found.returncode, found.stderr) == (1, "")
    assert wrong[0].startswith(
        f"!!  THREADMARK_DATA_DIR is {str(path)!r}, where nothing can be written ({shut} is closed to this user)"
    )
    assert started.returncode == 2
    assert started.stderr.startswith(f"threadmark: THREADMARK_DATA_DIR is {str(path)!r}, where nothing can be written")
    assert started.stderr.count("\n") == 1


def test_a_database_in_a_closed_folder_is_found(tmp_path: Path) -> None:
    """It is elsewhere than the data directory, so that a look at that one shows nothing."""
    shut = tmp_path / "shut"
    shut.mkdir()
    file = shut / "memory.db"
    with closed(shut, 0o500):
        found = as_anyone({"THREADMARK_MEMORY_DATABASE_URL": f"sqlite:///{file}"})

    assert (found.returncode, found.stderr) == (1, "")
    assert (
        f"!!  THREADMARK_MEMORY_DATABASE_URL: the database {file} cannot be made: {shut} is closed to this user"
        in found.stdout.splitlines()
    )
    assert f"the memory database {file}" not in found.stdout


def test_a_database_that_this_user_may_not_write_is_found(data_dir: Path) -> None:
    """One that another user made, or that a backup brought back read-only."""
    data_dir.mkdir(mode=0o700)
    assert main(["migrate"]) == 0
    file = data_dir / "state.db"
    with closed(file, 0o400):
        found = as_anyone({})

    assert (found.returncode, found.stderr) == (1, "")
    assert (
        f"!!  THREADMARK_STATE_DATABASE_URL: the database {file} cannot be written by this user"
        in found.stdout.splitlines()
    )
