"""Waiting for the schema: a process of many begins when the one that migrates is done, and says what it waits for."""

import logging

import psycopg
import pytest
from sqlalchemy.exc import OperationalError

from threadmark.workers import schema_wait
from threadmark.workers.schema_wait import await_schema


async def test_it_waits_and_says_each_reason_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """First the database does not answer, then it lacks something, then it lacks nothing."""
    monkeypatch.setattr(schema_wait, "POLL_S", 0.0)
    answers: list[list[str] | Exception] = [
        OperationalError("SELECT 1", {}, psycopg.OperationalError("connection refused\nis it running?")),
        OperationalError("SELECT 1", {}, psycopg.OperationalError("connection refused\nis it running?")),
        ["state has no tables yet, needed is v0001"],
        ["state has no tables yet, needed is v0001"],
        [],
    ]

    def gaps() -> list[str]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with caplog.at_level(logging.WARNING):
        await_schema(gaps)

    assert answers == []
    first, second = caplog.messages
    assert first == "waiting for the state database: connection refused"
    assert "no tables yet" in second
    assert "threadmark migrate" in second
