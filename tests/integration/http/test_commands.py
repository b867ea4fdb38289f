"""The command `threadmark`: what it does without a server, and what it prints for the operator who repairs one."""

import asyncio
import contextlib
import re
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Connection

from threadmark import state
from threadmark.app.access import Token
from threadmark.app.cli import main
from threadmark.app.server import listen

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory of the test's own, named by the environment as a service manager would."""
    path = tmp_path / "data"
    monkeypatch.setenv("THREADMARK_DATA_DIR", str(path))
    monkeypatch.setenv("PORT", "0")
    return path


def run(capture: Capture, *argv: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    code = main(argv)
    captured = capture.readouterr()
    return code, captured.out, captured.err


def test_migrate_makes_the_database_and_says_what_it_did(capsys: Capture, data_dir: Path) -> None:
    """The first time it makes everything, the second time there is nothing to do."""
    code, out, _ = run(capsys, "migrate")

    assert (code, data_dir.stat().st_mode & 0o777) == (0, 0o700)
    packages = ("state", "compaction", "app", "memory")
    assert [re.sub(r"needed is \w+", "needed is …", line) for line in out.splitlines()] == [
        f"{package} has no tables yet, needed is …: migrated" for package in packages
    ]
    assert run(capsys, "migrate")[:2] == (0, "nothing to do: both databases are up to date\n")


def test_a_database_that_is_behind_is_refused_with_the_command_that_helps(capsys: Capture) -> None:
    """Neither keys nor verify touch a database of another version."""
    for argv in (["keys", "list"], ["verify"]):
        code, out, err = run(capsys, *argv)

        assert (code, out) == (2, "")
        assert "run `threadmark migrate`" in err
        assert len(err.splitlines()) == 1


def test_a_key_is_made_listed_and_revoked(capsys: Capture) -> None:
    """The token alone is on standard output, so that a script can take it."""
    run(capsys, "migrate")
    argv = [
        "keys",
        "create",
        "--label",
        "a bot",
        "--tenant",
        "acme",
        "--scope",
        "read",
        "--scope",
        "run",
        "--days",
        "3",
    ]

    code, out, err = run(capsys, *argv)
    token = Token.parse(out.strip())

    assert (code, token is not None) == (0, True)
    assert token is not None
    assert token.key_id in err
    assert token.secret not in err
    listed = run(capsys, "keys", "list", "--tenant", "acme")[1]
    assert token.secret not in listed
    assert [token.key_id, "acme", "a bot", "read run", "live"] == [
        part for part in (token.key_id, "acme", "a bot", "read run", "live") if part in listed
    ]
    assert "acme" not in run(capsys, "keys", "list", "--tenant", "other")[1]
    assert run(capsys, "keys", "revoke", token.key_id)[0] == 0
    assert "revoked" in run(capsys, "keys", "list")[1]


def test_a_key_that_is_not_there_is_not_revoked(capsys: Capture) -> None:
    """A mistyped id is reported, and the exit code is not 0."""
    run(capsys, "migrate")

    assert run(capsys, "keys", "revoke", "0123456789abcdef") == (
        2,
        "",
        "threadmark: API key with ID 0123456789abcdef not found\n",
    )


def test_a_label_cannot_move_the_cursor_of_a_terminal(capsys: Capture) -> None:
    """A label is a client's text; listed, its control characters are spelled out."""
    run(capsys, "migrate")
    run(capsys, "keys", "create", "--label", "\x1b[2Jx\nforged", "--scope", "read")

    out = run(capsys, "keys", "list")[1]

    assert "\x1b" not in out
    assert "\\x1b[2Jx\\nforged" in out


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["fly"],
        ["keys"],
        ["keys", "create", "--scope", "read"],
        ["keys", "create", "--label", "x"],
        ["keys", "create", "--label", "x", "--scope", "owner"],
        ["keys", "create", "--label", "x", "--scope", "read", "--tenant", "a b"],
        ["keys", "create", "--label", "x", "--scope", "read", "--days", "0"],
    ],
)
def test_a_wrong_command_line_is_refused(capsys: Capture, argv: list[str]) -> None:
    """Usage on standard error, exit code 2, nothing done."""
    with pytest.raises(SystemExit) as ended:
        main(argv)

    assert ended.value.code == 2
    assert "usage: threadmark" in capsys.readouterr().err


def test_a_wrong_setting_stops_a_command_in_one_sentence(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback: the sentence says what to change."""
    monkeypatch.setenv("THREADMARK_HEARTBEAT_S", "60")

    code, _, err = run(capsys, "migrate")

    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("threadmark: THREADMARK_HEARTBEAT_S is 60")


def test_a_flag_stands_in_for_its_variable(capsys: Capture, tmp_path: Path) -> None:
    """--data-dir wins over THREADMARK_DATA_DIR."""
    run(capsys, "migrate", "--data-dir", str(tmp_path / "elsewhere"))

    assert (tmp_path / "elsewhere" / "state.db").exists()


def test_serve_fails_at_once_when_the_port_is_taken(capsys: Capture, data_dir: Path) -> None:
    """Before it makes or migrates anything, naming the port."""
    with listen("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])

        code, out, err = run(capsys, "serve", "--port", port)

    assert (code, out) == (2, "")
    assert f"port {port} of 127.0.0.1 is taken" in err
    assert not data_dir.exists()


def test_the_doctor_finds_a_fresh_machine_well(capsys: Capture, data_dir: Path) -> None:
    """Everything that a start needs is looked at, and nothing is made."""
    code, out, _ = run(capsys, "doctor")

    assert code == 0
    assert all(line.startswith("ok  ") for line in out.splitlines())
    assert "will be made by the first start" in out
    assert not data_dir.exists()


def test_the_doctor_says_what_is_wrong_and_how_to_mend_it(
    capsys: Capture, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open directory, an open key, a database behind, agents that are not there, a port that is taken."""
    data_dir.mkdir(mode=0o755)
    (data_dir / "admin.key").touch(0o644)
    sqlite3.connect(data_dir / "state.db").close()
    monkeypatch.setenv("THREADMARK_AGENTS", "nowhere:registry")
    monkeypatch.setenv("THREADMARK_HEARTBEET_S", "1")

    with listen("127.0.0.1", 0) as taken:
        code, out, _ = run(capsys, "doctor", "--port", str(taken.getsockname()[1]))

    assert code == 1
    assert "THREADMARK_HEARTBEET_S is set and means nothing; is it THREADMARK_HEARTBEAT_S?" in out
    wrong = [line for line in out.splitlines() if line.startswith("!!  ")]
    expected = ["chmod 700", "chmod 600", "chmod 600", "threadmark migrate", "THREADMARK_AGENTS", "is taken"]
    assert expected == [words for words, line in zip(expected, wrong, strict=True) if words in line]


def test_the_doctor_stops_at_settings_that_cannot_be_read(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without settings there is nothing else to look at."""
    monkeypatch.setenv("THREADMARK_SWEEP_S", "0")

    code, out, _ = run(capsys, "doctor")

    assert (code, len(out.splitlines())) == (1, 1)
    assert "THREADMARK_SWEEP_S" in out


def test_the_doctor_misses_an_operator(capsys: Capture) -> None:
    """A database whose operator's key was revoked cannot be managed over HTTP; the doctor says which command helps."""
    run(capsys, "migrate")
    run(capsys, "keys", "create", "--label", "a bot", "--scope", "admin")

    code, out, _ = run(capsys, "doctor")

    assert code == 1
    assert "threadmark keys create --label … --scope operator" in out
    run(capsys, "keys", "create", "--label", "me", "--scope", "operator")
    assert run(capsys, "doctor")[0] == 0


def test_the_doctor_survives_a_database_that_is_none(capsys: Capture, data_dir: Path) -> None:
    """Anything else at the database's path is reported in one line."""
    data_dir.mkdir(mode=0o700)
    (data_dir / "state.db").write_text("this is no database, " * 100)

    code, out, _ = run(capsys, "doctor")

    assert code == 1
    assert "the database does not answer as it should" in out


def test_verify_counts_what_it_checked(capsys: Capture) -> None:
    """An empty database verifies; a missing thread is reported."""
    run(capsys, "migrate")

    assert run(capsys, "verify")[:2] == (0, "0 threads, 0 damaged\n")
    assert run(capsys, "verify", "--thread", "x") == (1, "", "there is no thread x\n")


async def thread_with_an_entry(database_url: str) -> state.Thread:
    """A thread of the default tenant with one entry."""
    database = state.Database.open(database_url)

    def unit(connection: Connection) -> state.Thread:
        opened = state.open_thread(
            connection,
            tenant_id="default",
            thread_id=None,
            metadata={},
            keep_existing=False,
            receipt=None,
            now_us=1,
        )
        assert isinstance(opened, state.Thread)
        entry = state.StateUpdated(messages=(state.Message(id="m1", type="human", content="hello"),))
        state.update_state(connection, state.Update(thread=opened, entry=entry, expected_seq=0), 2)
        return opened

    try:
        return await database.write(unit)
    finally:
        await database.close()


def test_verify_names_the_thread_and_the_place_that_was_altered(capsys: Capture, data_dir: Path) -> None:
    """A journal as it was written holds; one byte of a payload later it does not, and the exit code says so."""
    run(capsys, "migrate")
    run(capsys, "keys", "create", "--label", "a bot", "--scope", "admin")
    thread = asyncio.run(thread_with_an_entry(f"sqlite:///{data_dir}/state.db"))
    assert run(capsys, "verify")[:2] == (0, "1 threads, 0 damaged\n")

    with contextlib.closing(sqlite3.connect(data_dir / "state.db")) as connection, connection:
        connection.execute("UPDATE entry SET payload = replace(payload, 'hello', 'hallo')")

    code, out, _ = run(capsys, "verify", "--thread", thread.thread_id)
    assert code == 1
    assert out.startswith(f"thread {thread.thread_id}, seq 1: ")
    assert out.endswith("1 threads, 1 damaged\n")


def test_the_version_is_printed(capsys: Capture) -> None:
    """As packages know it."""
    with pytest.raises(SystemExit) as ended:
        main(["--version"])

    assert (ended.value.code, capsys.readouterr().out.split()[0]) == (0, "threadmark")
