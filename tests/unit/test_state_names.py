"""Names: ids of threads and runs, step keys, idempotency keys, waits, checkpoints."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.factories import NOW_US
from threadmark.state import (
    ExecutionId,
    StepKey,
    checkpoint_id_of,
    idempotency_key_of,
    model_step,
    new_id,
    seq_of_checkpoint,
    wait_id_of,
)
from threadmark.state.entries.ids import tool_step
from threadmark.state.entries.position import SEQ_MAX

SEQS = st.integers(min_value=1, max_value=SEQ_MAX)
INSTANTS = st.integers(min_value=0, max_value=(1 << 48) * 1000 - 1)


@given(INSTANTS, INSTANTS)
def test_new_ids_are_in_the_order_of_time(one: int, other: int) -> None:
    """An id of a later millisecond sorts behind one of an earlier; each is a UUID of version 7."""
    first, second = sorted((one, other))

    ids = [new_id(first), new_id(second)]

    assert all(uuid.UUID(each).version == 7 and uuid.UUID(each).variant == uuid.RFC_4122 for each in ids)
    assert first // 1000 == second // 1000 or ids == sorted(ids)


def test_ids_of_one_instant_differ() -> None:
    """Threads of the same microsecond are not one thread."""
    assert len({new_id(NOW_US) for _ in range(1000)}) == 1000


@given(st.text(), st.integers(0, 1000), SEQS, INSTANTS)
def test_a_checkpoint_id_carries_its_seq(thread_id: str, branch: int, seq: int, at_us: int) -> None:
    """The place in the journal is found in the id itself: there is no table of checkpoints."""
    checkpoint_id = checkpoint_id_of(thread_id, branch, seq, at_us)

    assert seq_of_checkpoint(checkpoint_id) == seq
    assert str(uuid.UUID(checkpoint_id)) == checkpoint_id


@given(st.lists(st.tuples(SEQS, INSTANTS), min_size=2, max_size=8, unique=True))
def test_checkpoint_ids_are_in_the_order_of_time_and_then_of_seq(places: list[tuple[int, int]]) -> None:
    """Clients sort checkpoints by id; within a millisecond the journal's order decides."""
    places = sorted(places, key=lambda place: (place[1] // 1000, place[0]))

    ids = [checkpoint_id_of("thread", 0, seq, at_us) for seq, at_us in places]

    assert ids == sorted(ids)


@pytest.mark.parametrize("other", [("thread-2", 0, 7, NOW_US), ("thread-1", 1, 7, NOW_US), ("thread-1", 0, 8, NOW_US)])
def test_an_id_made_up_from_another_one_is_not_the_entry_s_own(other: tuple[str, int, int, int]) -> None:
    """The seal at the end covers thread, branch and seq: an id of another thread names nothing in this one."""
    own = checkpoint_id_of("thread-1", 0, 7, NOW_US)

    assert checkpoint_id_of(*other)[-10:] != own[-10:]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "latest",
        "00000000-0000-0000-0000-000000000000",
        pytest.param(str(uuid.uuid4()), id="version-4"),
        pytest.param(new_id(NOW_US), id="version-7"),
        "' OR 1=1 --",
        "\x00",
    ],
)
def test_what_is_no_checkpoint_id_has_no_seq(text: str) -> None:
    """Any other text, and a UUID of any other version, names no position."""
    assert seq_of_checkpoint(text) is None


@given(st.integers(1, 10**6), st.integers(0, 10**3), st.integers(1, 10**6), st.integers(0, 10**3))
def test_step_keys_do_not_collide(ordinal: int, index: int, other_ordinal: int, other_index: int) -> None:
    """Each model call and each tool call of an execution has a key of its own."""
    keys = {tool_step(ordinal, index), tool_step(other_ordinal, other_index), model_step(ordinal)}

    assert len(keys) == (2 if (ordinal, index) == (other_ordinal, other_index) else 3)


def test_an_idempotency_key_is_that_of_its_step_and_of_no_other() -> None:
    """The other side knows the same attempt again by it, and must not take another step for a repetition."""
    places = [("e1", "tool-1-0"), ("e1", "tool-1-1"), ("e2", "tool-1-0"), ("e1/tool-1", "0")]
    keys = [idempotency_key_of(ExecutionId(execution), StepKey(step)) for execution, step in places]

    assert keys == [idempotency_key_of(ExecutionId(execution), StepKey(step)) for execution, step in places]
    assert len(set(keys)) == len(places)
    assert all(len(key) <= 64 and key.isascii() for key in keys)


def test_the_waits_of_parallel_calls_have_ids_of_their_own_that_a_replay_finds_again() -> None:
    """An answer reaches the call that it was given to, before and after any restart (C25)."""
    execution = ExecutionId("e1")
    ids = [
        wait_id_of(execution, StepKey(step), kind)
        for step in ("tool-1-0", "tool-1-1")
        for kind in ("approval-0", "in_doubt-0", "approval-1")
    ]

    assert len(set(ids)) == len(ids)
    assert ids[0] == wait_id_of(execution, StepKey("tool-1-0"), "approval-0")
