"""Log lines: one record a line, whatever it holds, and no secret in any of them."""

import io
import json
import logging
import random
from collections.abc import Iterator

import pytest

from threadmark.app.access import Token
from threadmark.app.operations import logs

HOSTILE = [
    'x"\n{"level":"CRITICAL","event":"forged"}',
    "\r\n",
    "\x00\x07\x1b[2J\x7f\x85\x9b",
    "\u2028\u2029",
    "\u202e\u2066\u200f",
    "\ud800",
    "🙂\U0010ffff",
    "\\",
]


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Where the lines go; the logging of the test run is put back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    written = io.StringIO()
    logs.configure("info", written)
    yield written
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_thousand_hostile_records_are_a_thousand_lines(stream: io.StringIO) -> None:
    """Control characters, line separators, marks of direction: a record stays one printable line, and reads back."""
    chance = random.Random(21)
    alphabet = [*"".join(HOSTILE), *'ab{}:",', *map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0))]
    texts = ["".join(chance.choices(alphabet, k=chance.randrange(40))) for _ in range(1_000 - len(HOSTILE))] + HOSTILE

    for text in texts:
        logging.getLogger("threadmark.test").info("request", extra={"thread_id": text, text or "empty": 1})

    lines = stream.getvalue().split("\n")
    assert lines.pop() == ""
    assert len(lines) == 1_000
    assert all(0x20 <= ord(character) < 0x7F for line in lines for character in line)
    assert texts == [json.loads(line)["thread_id"] for line in lines]


def test_a_line_says_what_where_when_and_how_bad(stream: io.StringIO) -> None:
    """Event, logger, level and an instant in UTC, beside the facts."""
    logging.getLogger("threadmark.worker").warning("a worker is %s", "late", extra={"lag_s": 1.5})

    line = json.loads(stream.getvalue())
    assert line.pop("at").endswith("Z")
    assert line == {"event": "a worker is late", "logger": "threadmark.worker", "level": "warning", "lag_s": 1.5}


def test_what_is_less_severe_than_the_level_is_not_written(stream: io.StringIO) -> None:
    """Level info is without debug, and without the chatter of libraries."""
    logging.getLogger("threadmark.test").debug("not this")
    logging.getLogger("httpx").info("nor this")

    assert stream.getvalue() == ""


def test_a_traceback_is_one_line_too(stream: io.StringIO) -> None:
    """A failure keeps its traceback, inside its record."""
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        logging.getLogger("threadmark.test").exception("failed")

    (line,) = stream.getvalue().splitlines()
    assert "ValueError: first\nsecond" in json.loads(line)["exception"]


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        pytest.param(f"key {(token := Token.fresh()).text} refused", token.secret, id="key"),
        ("the key sk-proj-abcdefgh12345678 is wrong", "abcdefgh12345678"),
        ("postgresql+psycopg://user:hunter2@db:5432/x", "hunter2"),
        ("redis://:hunter2@cache", "hunter2"),
    ],
)
def test_a_secret_that_got_into_a_message_does_not_get_out(stream: io.StringIO, text: str, secret: str) -> None:
    """Nothing logs secrets on purpose; what a library puts into its message is masked, and the rest stays readable."""
    logging.getLogger("threadmark.test").error("%s", text, extra={"also": text})

    assert secret not in stream.getvalue()
    assert "***" in json.loads(stream.getvalue())["also"]
