"""What is the matter with a database follows from its own error codes, and from nothing else."""

import sqlite3

import psycopg
import pytest
from psycopg import errors
from sqlalchemy.exc import OperationalError

from threadmark.app.requests.errors import problem_of
from threadmark.db import Condition, condition_of
from threadmark.db.outage import away, is_outage, is_passing
from threadmark.memory import Unavailable
from threadmark.state import DatabaseAway

BY_SQLSTATE: dict[str, Condition | None] = {
    "08006": Condition.AWAY,
    "08P01": Condition.AWAY,
    "25006": Condition.READ_ONLY,
    "25P03": Condition.AWAY,
    "28P01": Condition.LOGIN_REFUSED,
    "40001": Condition.BUSY,
    "40P01": Condition.BUSY,
    "53000": Condition.OVERLOADED,
    "53100": Condition.DISK_FULL,
    "53200": Condition.OUT_OF_MEMORY,
    "53300": Condition.TOO_MANY_CONNECTIONS,
    "53400": Condition.OVERLOADED,
    "55P03": Condition.BUSY,
    "57014": Condition.QUERY_CANCELLED,
    "57P01": Condition.AWAY,
    "57P02": Condition.AWAY,
    "57P03": Condition.AWAY,
    "58030": Condition.IO_ERROR,
    "58P01": Condition.IO_ERROR,
    "XX001": Condition.DAMAGED,
    "23505": None,
    "42P01": None,
    "22003": None,
    "XX000": None,
}
BY_SQLITE_CODE: dict[int, Condition | None] = {
    sqlite3.SQLITE_BUSY: Condition.BUSY,
    sqlite3.SQLITE_BUSY_SNAPSHOT: Condition.BUSY,
    sqlite3.SQLITE_CANTOPEN: Condition.AWAY,
    sqlite3.SQLITE_CORRUPT: Condition.DAMAGED,
    sqlite3.SQLITE_FULL: Condition.DISK_FULL,
    sqlite3.SQLITE_IOERR_FSYNC: Condition.IO_ERROR,
    sqlite3.SQLITE_IOERR_NOMEM: Condition.OUT_OF_MEMORY,
    sqlite3.SQLITE_NOMEM: Condition.OUT_OF_MEMORY,
    sqlite3.SQLITE_READONLY: Condition.READ_ONLY,
    sqlite3.SQLITE_READONLY_DBMOVED: Condition.READ_ONLY,
    sqlite3.SQLITE_CONSTRAINT_UNIQUE: None,
    sqlite3.SQLITE_ERROR: None,
}
BY_WORDS: dict[str, Condition] = {
    "connection failed: FATAL:  sorry, too many clients already": Condition.TOO_MANY_CONNECTIONS,
    "connection failed: FATAL:  remaining connection slots are reserved": Condition.TOO_MANY_CONNECTIONS,
    'connection failed: FATAL:  password authentication failed for user "x"': Condition.LOGIN_REFUSED,
    "connection failed: FATAL:  the database system is starting up": Condition.AWAY,
    "connection failed: Connection refused": Condition.AWAY,
}
#: One attempt more is no use where a person has to act first.
PASSING = {Condition.AWAY, Condition.BUSY, Condition.TOO_MANY_CONNECTIONS}


def wrapped(error: BaseException) -> OperationalError:
    """As the toolkit hands it on. Its own class says nothing: a syntax error of SQLite is an OperationalError too."""
    return OperationalError("SELECT 1", {}, error)


def of_sqlite(code: int) -> sqlite3.Error:
    """An error of the driver with this result code."""
    error = sqlite3.OperationalError("words that mean nothing")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(("state", "expected"), BY_SQLSTATE.items())
def test_postgresql_is_recognised_by_its_sqlstate(state: str, expected: Condition | None) -> None:
    """The code decides, whatever class of exception brings it."""
    error = psycopg.OperationalError("words that mean nothing")
    error.sqlstate = state

    assert condition_of(error) is condition_of(wrapped(error)) is expected
    assert is_outage(error) is (expected is not None)
    assert is_passing(error) is (expected in PASSING)


def test_a_class_of_the_driver_has_its_code() -> None:
    """The driver's own exception classes carry the code of their name."""
    assert condition_of(errors.DiskFull()) is Condition.DISK_FULL
    assert condition_of(errors.UniqueViolation()) is None


@pytest.mark.parametrize(("code", "expected"), BY_SQLITE_CODE.items())
def test_sqlite_is_recognised_by_its_result_code(code: int, expected: Condition | None) -> None:
    """The extended code first, then the primary one."""
    assert condition_of(of_sqlite(code)) is condition_of(wrapped(of_sqlite(code))) is expected


@pytest.mark.parametrize(("words", "expected"), BY_WORDS.items())
def test_a_refused_connection_is_recognised_by_the_servers_message(words: str, expected: Condition) -> None:
    """The driver has no code for it; what is not known means away."""
    assert condition_of(psycopg.OperationalError(words)) is expected


def test_what_is_no_error_of_a_database_has_no_condition() -> None:
    """Defects of the code are not outages."""
    assert [condition_of(each) for each in (ValueError("x"), psycopg.ProgrammingError("x"), None)] == [None] * 3


@pytest.mark.parametrize("condition", Condition)
def test_each_condition_is_503_with_a_code_of_its_own(condition: Condition) -> None:
    """With Retry-After and a sentence, for both databases; nothing of the server's own words gets out."""
    problem = problem_of(DatabaseAway(condition))
    of_memory = problem_of(Unavailable("memory", condition))

    assert (problem.status, problem.code) == (503, f"database_{condition}")
    assert of_memory.code == ("memory_unavailable" if condition is Condition.AWAY else f"memory_{condition}")
    for each in (problem, of_memory):
        assert int(each.headers["retry-after"]) >= 1
    assert condition.sentence in problem.detail


def test_the_cause_is_kept_for_the_log() -> None:
    """The server's words are no part of the answer, and lead from it."""
    error = wrapped(of_sqlite(sqlite3.SQLITE_FULL))
    refusal = away(error)

    assert refusal.__cause__ is error
    assert "words" not in str(refusal)
