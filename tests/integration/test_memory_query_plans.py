"""What remembering and recalling read does not grow with the namespace: SQLite's plans of every statement they run."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from tests.support.memory_house import CHANGE, HOME, NOW, city, draft, house, moment, question

#: Tables that grow with what is remembered.
GROWING = ("memory_assertion", "memory_evidence", "memory_succession", "memory_namespace", "memory_namespace_prefix")


@pytest.fixture
def statements() -> Any:
    """Every SELECT, UPDATE and DELETE that is run meanwhile, with its parameters."""
    found: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        if statement.split(maxsplit=1)[0] in {"SELECT", "UPDATE", "DELETE", "WITH"}:
            found.append((statement, parameters[0] if many else parameters))

    event.listen(Engine, "before_cursor_execute", note)
    yield found
    event.remove(Engine, "before_cursor_execute", note)


def whole_reads(path: Path, statements: list[tuple[str, Any]]) -> list[str]:
    """The steps of the plans that read all rows of a table, or all of a namespace."""
    reading = sqlite3.connect(path)
    found = []
    for statement, parameters in statements:
        for _, _, _, step in reading.execute(f"EXPLAIN QUERY PLAN {statement}", parameters):
            scans = step.startswith("SCAN") and any(f"SCAN {name}" in step for name in GROWING)
            if scans or step.endswith("memory_assertion_by_namespace (namespace_id=?)"):
                found.append(f"{step}: {statement}")
    reading.close()
    return found


async def test_no_statement_of_a_write_or_a_recall_reads_a_whole_namespace(
    tmp_path: Path, statements: list[tuple[str, Any]]
) -> None:
    """Plain statements, repetitions, single-valued attributes, retraction, undo, recall, and one memory by its id."""
    path = tmp_path / "memory.db"
    async with house(f"sqlite:///{path}") as memory:
        statements.clear()
        said = await memory.remember([draft("likes tea", origin=moment(1)), city("Rome")], scope=HOME, now=NOW)
        await memory.remember([draft("likes tea", origin=moment(2)), city("Oslo")], scope=HOME, now=NOW)
        await memory.retract(said[0].assertion_id, scope=HOME, reason="no", change=CHANGE)
        await memory.undo(said[0].assertion_id, scope=HOME, change=CHANGE)
        await memory.index_pending()
        await memory.recall(question("Where does the user live?"))
        await memory.get(said[0].assertion_id, scope=HOME)
        await memory.history(said[0].assertion_id, scope=HOME)

        assert len(statements) > 20
        assert await asyncio.to_thread(whole_reads, path, statements) == []
