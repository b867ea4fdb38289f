"""Golden vectors: the digests by which stored work is found again, or is the same work as before.

They were computed apart from the product, with SHA-256 over bytes that are written out. One that changes asks people
again, promotes twice or pays twice: it needs a new format with a version, not a new vector.
"""

from typing import Any

import pytest

from threadmark.compaction.input.source import Part, PartKind, Role, SourceEntry, Trust
from threadmark.compaction.input.transcript import source_entry
from threadmark.compaction.ledger import Judged
from threadmark.compaction.ledger.collect import Unit
from threadmark.compaction.ledger.outcomes import UnitOutcome
from threadmark.compaction.ledger.rows import RowKey, Source
from threadmark.compaction.ledger.terms import Status, UnitKind
from threadmark.compaction.run.promotion_choice import promotions_of
from threadmark.compaction.summary import prompts_for
from threadmark.state import Call, Execution, ExecutionId, Message, StepKey, ToolCall
from threadmark.workers.turn.calls import ask


@pytest.mark.parametrize(
    ("tool", "arguments", "digest"),
    [
        (
            "send",
            {"to": {"z": "ann", "a": [1, 2.5, None, True]}, "body": "café"},
            "5293beabbcf1a0d25b964ae6a73ac120ba4a3c332744669a281221d81d8bde47",
        ),
        ("look", {}, "82c00f6a38fed6c4d74089179c16dbe0e2731bcae3b89051b6597b5145e7d219"),
    ],
)
def test_the_digest_of_what_a_person_was_shown(tool: str, arguments: dict[str, Any], digest: str) -> None:
    """Tool and arguments as JSON: keys sorted at every depth, no spaces, ASCII alone."""
    execution = Execution(ExecutionId("e-1"), run=1, run_id="r-1", assistant="agent", run_started_at_us=0)
    call = Call(StepKey("tool-1-0"), ToolCall("c-1", tool, arguments))

    assert ask(call, execution, "approval").shown_digest == digest


@pytest.mark.parametrize(
    ("thread_ref", "key", "promotion_id"),
    [
        (
            "thread-é",
            RowKey(UnitKind.CLAUSE, "constraint", "never call after nine"),
            "a7f7211fbd1cd3eff232768ac17a40de",
        ),
        ("thread-1", RowKey(UnitKind.ATOM, "money", "EUR 500"), "132cd7f1e6d7114d0e7d51c76687f3fb"),
        ("thread-1", RowKey(UnitKind.CLAUSE, "decision", "a \ud800"), "d2affc86585fb42a245eb35cbbc369e6"),
    ],
)
def test_the_id_of_a_promotion(thread_ref: str, key: RowKey, promotion_id: str) -> None:
    """The thread, the kind, the class and the canonical value, zero bytes between them; half a SHA-256."""
    unit = Unit(key=key, text="as it was said", role=Role.HUMAN, trust=Trust.USER, sources=[Source(4, 0, 0, 0, 14)])
    judged = Judged({key: unit}, {key: UnitOutcome(Status.DROPPED)}, [])

    assert [each.promotion_id for each in promotions_of(judged, thread_ref, count_max=5)] == [promotion_id]


@pytest.mark.parametrize(
    ("refused", "key"),
    [
        (None, "113eac0a99723c7df2125dcce8b0ef354464d58e93a981dad23147116820791a"),
        ("it was empty", "c7f867d2a6d2f9ce4b17d0bf184089601b08eda776ccdbeba6d2610dbad1f2fd"),
    ],
)
def test_the_key_of_a_paid_reply(refused: str | None, key: str) -> None:
    """The version, the system part and the user part, zero bytes between them; new words need a new version."""
    entries = [
        SourceEntry(seq=3, role=Role.HUMAN, parts=(Part(text="Pay €500."),)),
        SourceEntry(seq=5, role=Role.AI, parts=(Part(text="Paid \ud800."),)),
    ]

    (prompt,) = prompts_for(entries, chunk_tokens=1000, summary_tokens=300, count=len, refused=refused)

    assert prompt.key == key


@pytest.mark.parametrize(
    ("block", "kind", "digest", "size"),
    [
        (
            {"type": "image_url", "image_url": {"url": "https://example.com/café.png", "detail": "low"}},
            PartKind.MEDIA,
            "679381ed93c74cfad408144da0485ea6a249c68e04d67898139950e449b1fea5",
            87,
        ),
        (
            {"type": "reasoning", "data": "\ud800"},
            PartKind.OPAQUE,
            "9de06887ed4a309b42c0bc000184915162afa57ae2df202393acb06ab76b2bd5",
            33,
        ),
    ],
)
def test_the_digest_of_media(block: dict[str, Any], kind: PartKind, digest: str, size: int) -> None:
    """The content block as the journal holds it: keys in their order, no spaces, UTF-8."""
    (part,) = source_entry(Message(id="m-1", type="human", content=[block]), 3).parts

    assert (part.kind, part.digest, part.size) == (kind, digest, size)
