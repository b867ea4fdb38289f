"""SQL is written by authors: values are bound, text is never put together from what arrives."""

import re

import pytest

from tests.architecture.sources import PROGRAMS, snippet, sources
from tests.architecture.sql_rule import composed_sql

#: `file: call` as a finding shows them, and the reason why no input gets there.
EXCEPTIONS = {
    "state/tables.py: text(where)": "predicates of partial indexes, literals given where the tables are declared",
}

HEAD = "from sqlalchemy import text\nimport sqlalchemy as sa\nNAMES = 'SELECT 1'\nMADE = f'SELECT {NAMES}'\n"


def in_a_function(*lines: str) -> str:
    """A file with constants and these lines in a function that is handed `value` and `sql`."""
    return HEAD + "def ask(connection, value, sql):\n" + "".join(f"    {line}\n" for line in lines)


def test_sql_is_never_put_together() -> None:
    """No f-string, %, + or format makes SQL: an input could finish the sentence. A module may join its constants."""
    findings = [finding for file in sources(*PROGRAMS) for finding in composed_sql(file)]
    unexplained = [finding for finding in findings if re.sub(r":\d+:", ":", finding) not in EXCEPTIONS]

    assert not unexplained, "\n".join(unexplained)


@pytest.mark.parametrize(
    "line",
    [
        "connection.execute(f'SELECT {value}')",
        "connection.execute('SELECT %s' % value)",
        "connection.execute('SELECT ' + value)",
        "connection.execute('SELECT {}'.format(value))",
        "connection.execute(' AND '.join(value))",
        "connection.execute(text(f'SELECT {value}'))",
        "connection.execute(sa.text('SELECT ' + value))",
        "connection.exec_driver_sql('SELECT %s' % value)",
        "connection.exec_driver_sql(sql)",
        "connection.execute(text(sql))",
        "made = f'SELECT {value}'; connection.execute(made)",
        "made = f'SELECT {value}'; connection.exec_driver_sql(made)",
        "made = NAMES; made += value; connection.exec_driver_sql(made)",
        "op.execute('DROP TABLE ' + value)",
    ],
)
def test_the_rule_sees(line: str) -> None:
    """Each way of putting input into SQL is found, directly or through a name."""
    assert len(composed_sql(snippet(in_a_function(line)))) == 1


@pytest.mark.parametrize(
    "line",
    [
        "connection.execute(text('SELECT :value'), {'value': value})",
        "connection.execute(text(NAMES))",
        "connection.execute(text(MADE))",
        "connection.execute(select(Run).where(Run.id == value))",
        "connection.execute(sql)",
        "connection.exec_driver_sql('BEGIN IMMEDIATE' if value else 'BEGIN')",
        "connection.exec_driver_sql(statements.CLAIM, (value,))",
        "connection.execute(f'PRAGMA busy_timeout={BUSY_MS:d}')",
        "connection.execute('SELECT * FROM ' + NAMES)",
        "begin = 'BEGIN IMMEDIATE'; connection.exec_driver_sql(begin)",
        "for pragma in (NAMES, 'PRAGMA optimize'): connection.exec_driver_sql(pragma)",
        "op.execute(sa.text('SELECT 1'))",
        "message.text(f'hello {value}')",
    ],
)
def test_the_rule_lets_pass(line: str) -> None:
    """Bound values, statement objects and written text are no findings."""
    assert composed_sql(snippet(in_a_function(line))) == []
