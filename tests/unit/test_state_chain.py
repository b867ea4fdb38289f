"""The hash chain: every edit of a journal shows."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadmark.state.entries.chain import GENESIS, link, payload_digest

THREAD = "thread-1"


@dataclass(frozen=True)
class Block:
    """An entry, as far as the chain looks at it."""

    seq: int
    branch: int = 0
    run: int | None = 1
    fence: int = 1
    at_us: int = 0
    kind: str = "turn_started"
    payload: bytes = b"{}"
    salt: bytes = b"salt"

    def after(self, previous: bytes, thread_id: str = THREAD) -> bytes:
        """The digest of this block in its place."""
        return link(
            previous,
            thread_id=thread_id,
            seq=self.seq,
            branch=self.branch,
            run=self.run,
            fence=self.fence,
            at_us=self.at_us,
            kind=self.kind,
            payload=payload_digest(self.salt, self.payload),
        )


def digests(blocks: list[Block], thread_id: str = THREAD) -> list[bytes]:
    """The digest after each block."""
    found, previous = [], GENESIS
    for block in blocks:
        previous = block.after(previous, thread_id)
        found.append(previous)
    return found


def a_chain(length: int = 6) -> list[Block]:
    return [Block(seq, payload=f"entry {seq}".encode(), salt=bytes([seq])) for seq in range(1, length + 1)]


@pytest.mark.parametrize(
    "change",
    [
        {"seq": 9},
        {"branch": 1},
        {"run": 2},
        {"run": None},
        {"fence": 2},
        {"at_us": 1},
        {"kind": "model_replied"},
        {"payload": b"another"},
        {"salt": b"another"},
    ],
)
@pytest.mark.parametrize("at", [0, 3, 5])
def test_an_edit_of_any_column_changes_every_digest_from_there(change: dict[str, object], at: int) -> None:
    """Who wrote, when, where, under which fence and what: none of it can be changed unseen."""
    blocks = a_chain()
    edited = [*blocks[:at], replace(blocks[at], **change), *blocks[at + 1 :]]  # type: ignore[arg-type]

    before, after = digests(blocks), digests(edited)

    assert before[:at] == after[:at]
    assert all(one != other for one, other in zip(before[at:], after[at:], strict=True))


@given(st.permutations(range(6)))
def test_a_reordering_changes_the_head(order: list[int]) -> None:
    """Entries that swap places give another head, unless they stand where they stood."""
    blocks = a_chain()

    same = digests([blocks[index] for index in order])[-1] == digests(blocks)[-1]

    assert same == (order == sorted(order))


@given(st.sets(st.integers(min_value=0, max_value=5), max_size=5))
def test_a_removal_changes_the_head(kept_away: set[int]) -> None:
    """Entries taken out, at the end too, give another head; the head is stored apart from the entries."""
    blocks = a_chain()

    left = [block for index, block in enumerate(blocks) if index not in kept_away]

    assert (digests(left)[-1] == digests(blocks)[-1]) == (not kept_away)


def test_a_chain_belongs_to_one_thread() -> None:
    """The entries of one thread do not verify as those of another."""
    assert digests(a_chain())[-1] != digests(a_chain(), "thread-2")[-1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("thread", "kind"), ("threadk", "ind")),
        (("thread", ""), ("thread\0", "")),
    ],
)
def test_what_stands_side_by_side_cannot_be_shifted(one: tuple[str, str], other: tuple[str, str]) -> None:
    """No character moves unseen from one part of a link into the next."""

    def digest(thread_id: str, kind: str) -> bytes:
        return Block(1, kind=kind).after(GENESIS, thread_id)

    assert digest(*one) != digest(*other)


def test_the_digest_of_a_short_text_cannot_be_guessed() -> None:
    """The same payload under two salts has two digests: what is left of an erased text does not give it away."""
    assert payload_digest(b"salt-1", b"yes") != payload_digest(b"salt-2", b"yes")
    assert len(payload_digest(b"salt-1", b"yes")) == len(GENESIS)
