"""What the journal is made of: values that nobody changes, that hold no misspelt field, and that begin with nothing."""

import dataclasses
import importlib
import pkgutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from sqlalchemy import create_engine, select
from sqlalchemy.dialects import postgresql

from tests.support.factories import EXECUTION, Story, asked, replied, returned
from threadmark.state import Call, Execution, StepKey, ThreadState
from threadmark.state.entries.entry import KINDS
from threadmark.state.entries.instants import FAR_US, database_now_us, to_us
from threadmark.state.entries.run_index import RunIndex
from threadmark.state.fold.fold_cache import Folded
from threadmark.state.fold.history import History
from threadmark.state.fold.steps import Attempt, Step, Steps

#: What is moved on while entries are read; all else stays as it was made.
MOVING: set[type[Any]] = {Call, Execution, ThreadState, RunIndex, Step}
BUILT_BY_NAME: list[type[Any]] = [*KINDS.values(), Attempt, Step, Steps, History, Folded]


def classes_of(name: str) -> Iterator[type[Any]]:
    """Every class of values in the package's modules."""
    for module in pkgutil.iter_modules(importlib.import_module(name).__path__, f"{name}."):
        for each in vars(importlib.import_module(module.name)).values():
            is_own = isinstance(each, type) and each.__module__ == module.name
            if is_own and (dataclasses.is_dataclass(each) or issubclass(each, msgspec.Struct)):
                yield each


VALUES = [*classes_of("threadmark.state.entries"), *classes_of("threadmark.state.fold")]


def fields_of(cls: type[Any]) -> list[str]:
    """The names of its fields."""
    if issubclass(cls, msgspec.Struct):
        return list(cls.__struct_fields__)
    return [each.name for each in dataclasses.fields(cls)]


def bare(cls: type[Any]) -> Any:
    """A value of nothing: enough to try what may be set."""
    return cls(**dict.fromkeys(fields_of(cls)))


@pytest.mark.parametrize("cls", VALUES, ids=lambda cls: cls.__name__)
def test_what_the_journal_says_is_never_changed(cls: type[Any]) -> None:
    """A field is set once, where the value is made; only what a reader moves on can be changed."""
    value = bare(cls)
    if cls in MOVING:
        setattr(value, fields_of(cls)[0], None)
    else:
        with pytest.raises(AttributeError):
            setattr(value, fields_of(cls)[0], None)


@pytest.mark.parametrize("cls", VALUES, ids=lambda cls: cls.__name__)
def test_a_misspelt_field_has_no_place(cls: type[Any]) -> None:
    """A value of the journal has its fields and no room beside them: there are hundreds of thousands of them."""
    assert not hasattr(bare(cls), "__dict__")


@pytest.mark.parametrize("cls", BUILT_BY_NAME, ids=lambda cls: cls.__name__)
def test_what_has_many_fields_is_built_by_their_names(cls: type[Any]) -> None:
    """No two of them can be mistaken for each other."""
    with pytest.raises(TypeError, match="positional"):
        cls(None)


def test_what_is_read_begins_with_nothing() -> None:
    """Nothing counted, nothing known, nobody waiting; an execution's first turn is its turn 1."""
    call = asked()
    execution = Execution(EXECUTION, 1, "run-1", "chat", run_started_at_us=5)
    begun: list[tuple[Any, set[str]]] = [
        (ThreadState(), set()),
        (Call(StepKey("tool-1-0"), call), {"step_key", "call"}),
        (execution, {"execution_id", "run", "run_id", "assistant", "run_started_at_us", "ready_turn"}),
    ]
    for value, given in begun:
        rest = [each.name for each in dataclasses.fields(value) if each.name not in given]
        assert {name for name in rest if getattr(value, name)} == set()
    assert (execution.ready_turn, execution.model_attempt, execution.token_count) == (1, 1, 0)
    assert [Call(StepKey("k"), call).attempt(0), Call(StepKey("k"), call, effect="once").attempt(0)] == [1, 1]


def test_a_stored_entry_that_says_less_reads_with_the_first_attempt() -> None:
    """What an older version did not write: the attempt was the first, nothing failed for good, nobody knows how long
    it took."""
    entries = {
        "model_replied": {**msgspec.to_builtins(replied())},
        "tool_returned": {**msgspec.to_builtins(returned("tool-1-0"))},
        "recalled": {"step_key": "recall-1", "message_id": "m", "question": {}},
        "step_failed": {"step_key": "tool-1-0", "attempt": 1, "failure": {"error": "E", "message": "m"}},
    }
    for kind, fields in entries.items():
        least = {name: value for name, value in fields.items() if name not in ("attempt", "duration_us", "final")}
        least |= {"attempt": 1} if kind == "step_failed" else {}
        entry: Any = msgspec.convert(least, KINDS[kind])
        assert entry.attempt == 1
        assert not getattr(entry, "duration_us", 0)
        assert not getattr(entry, "final", False)
        assert not getattr(entry, "retry_at_us", 0)


def test_a_printed_position_does_not_recite_the_thread() -> None:
    """It names itself; those before it are a chain as long as the thread."""
    first = Story.begun().state.position
    last = Story.begun(replied(asked()), returned("tool-1-0"), replied(ordinal=2)).state.position

    assert first is not None
    assert last is not None
    assert len(repr(last)) < len(repr(first)) + 10


def test_a_fold_is_compared_by_what_it_folds() -> None:
    """What others made of its messages is no part of it, in a comparison or in print."""
    story = Story.begun()
    fields: dict[str, Any] = {
        "head_seq": 2,
        "head_digest": b"",
        "lineage": (),
        "erasures": 0,
        "state": story.state,
        "run_index": RunIndex(),
        "byte_count": 4,
    }

    assert Folded(**fields, around={"view": "words"}) == Folded(**fields)
    assert "words" not in repr(Folded(**fields, around={"view": "words"}))


def test_the_far_future_is_later_than_every_instant_and_a_number_for_every_database() -> None:
    """It fits 64 bits with a sign."""
    assert to_us(datetime.max.replace(tzinfo=UTC)) < FAR_US < 2**63


def test_the_clock_of_a_database_is_in_epoch_microseconds() -> None:
    """SQLite's to the millisecond or so; PostgreSQL is asked for the time of the statement, not of the transaction."""
    query = select(database_now_us())
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        before, now, after = time.time(), connection.execute(query).scalar_one(), time.time()
    engine.dispose()

    assert before - 1 < now / 1_000_000 < after + 1
    assert "clock_timestamp() * 1000000" in str(query.compile(dialect=postgresql.dialect())).replace(")) *", ") *")  # type: ignore[no-untyped-call]
    assert query._generate_cache_key() is not None  # it is compiled once, not for each statement
