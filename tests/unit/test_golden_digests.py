"""Golden vectors: the bytes of every digest that is stored, or that a client or another server brings back.

The digests were computed apart from the product, from the documented formats. One that changes makes journals, ledgers,
cursors and keys of before unreadable: it needs a new format with a version, not a new vector.
"""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from threadmark.app.access.key import Token
from threadmark.app.listing.cursors import Cursor, CursorSigner, Listing
from threadmark.app.requests.idempotency import request_digest
from threadmark.app.wire.conversations.state_schema import task_id_of
from threadmark.compaction.input.source import Call, Part, Role, SourceEntry, Trust
from threadmark.compaction.ledger.rows import Place, Row, RowKey, Source, row_id_of
from threadmark.compaction.ledger.rules import Rules
from threadmark.compaction.ledger.seal import GENESIS as LEDGER_GENESIS
from threadmark.compaction.ledger.seal import content_digest, root_of, seal_rows
from threadmark.compaction.ledger.terms import Status, UnitKind
from threadmark.compaction.model.policy import Policy
from threadmark.compaction.model.records import Order
from threadmark.compaction.store.views import signature_of
from threadmark.compaction.view.items import first_view
from threadmark.compaction.view.render import render
from threadmark.memory.index.index import tag
from threadmark.memory.index.index_documents import IndexDocument
from threadmark.memory.model.assertion import Cardinality, Draft
from threadmark.memory.model.provenance import Origin, quote_hash
from threadmark.memory.model.scope import Scope
from threadmark.memory.write.preparation import prepare
from threadmark.state.entries.chain import GENESIS, link, payload_digest
from threadmark.state.entries.ids import ExecutionId, StepKey, idempotency_key_of, wait_id_of
from threadmark.state.entries.position import checkpoint_id_of
from threadmark.workers.agents.agent import assistant_id_of

FIRST_LINK = "3e11392a7935e7ec8ad3d04236fa37798bb827e3b0af74c1c46ef35d328c69a2"
PLACE = Source(seq=4, message=0, part=0, start=10, end=14)
AMOUNT = Row(
    unit=UnitKind.ATOM,
    cls="amount",
    canon="EUR 500",
    text="€500",
    status=Status.DROPPED,
    sources=(PLACE,),
    critical=True,
    role=Role.HUMAN,
    trust=Trust.USER,
    salience=0.5,
    superseded_by="EUR 700",
)


def test_the_genesis_of_a_thread_is_32_zero_bytes() -> None:
    """The first entry is chained to them."""
    assert GENESIS.hex() == "00" * 32


@pytest.mark.parametrize(
    ("salt", "payload", "digest"),
    [
        (bytes(range(16)), b'{"text":"Hi"}', "99bd6efa671521c241158eddf51b5dd4e9a4c09cc0e53084aa5b3484f98c9208"),
        (bytes(16), b"{}", "333b13ff02f57ae18049b82ca66f37592c5a3d8fd54e44e23ae5c7085c24fd2a"),
    ],
)
def test_the_digest_of_a_payload(salt: bytes, payload: bytes, digest: str) -> None:
    """The salt comes first."""
    assert payload_digest(salt, payload).hex() == digest


def test_the_links_of_a_chain() -> None:
    """Big-endian, each number in its width and its place; an entry without a run has -1 for it."""
    first = link(
        GENESIS,
        thread_id="thread-1",
        seq=1,
        branch=0,
        run=7,
        fence=3,
        at_us=1_700_000_000_000_001,
        kind="turn_started",
        payload=bytes.fromhex("99bd6efa671521c241158eddf51b5dd4e9a4c09cc0e53084aa5b3484f98c9208"),
    )
    second = link(
        bytes.fromhex(FIRST_LINK),
        thread_id="thread-1",
        seq=2,
        branch=5,
        run=None,
        fence=0,
        at_us=-2,
        kind="state_set",
        payload=bytes.fromhex("333b13ff02f57ae18049b82ca66f37592c5a3d8fd54e44e23ae5c7085c24fd2a"),
    )

    assert first.hex() == FIRST_LINK
    assert second.hex() == "0c4fa1910196601d50b41cb71b52e4b30a4cb72ceebed16d042b310fa2e99c23"


@pytest.mark.parametrize(
    ("branch", "seq", "at_us", "checkpoint_id"),
    [
        (0, 1, 1_700_000_000_000_001, "018bcfe5-6800-8000-8000-07e5cac61e4f"),
        (3, 4_000_000_001, 1_700_000_000_999_999, "018bcfe5-6be7-8ee6-aca0-0406b1e37a77"),
    ],
)
def test_checkpoint_ids(branch: int, seq: int, at_us: int, checkpoint_id: str) -> None:
    """Clients keep them."""
    assert checkpoint_id_of("thread-1", branch, seq, at_us) == checkpoint_id


def test_the_ids_that_are_made_from_names() -> None:
    """Keys that tools hand out, questions, tasks and assistants: each server makes the same ones."""
    execution, step = ExecutionId("execution-1"), StepKey("tool-1-0")

    assert idempotency_key_of(execution, step) == "tmk_3f268ddd13d76b7d5eacd46bab8ff3d573ca48d4"
    assert wait_id_of(execution, step, "approval-0") == "3c862476-4895-53e4-b1a6-3463e340ff30"
    assert task_id_of("checkpoint-1", "model") == "52729242-3b77-555a-8e63-c2e35e119dbc"
    assert assistant_id_of("agent") == "78b58264-a4b0-5ff5-a7af-e17c50d43d31"


def test_the_digest_of_a_key() -> None:
    """What is stored of a secret."""
    digest = "271a413bd339c5709fdceaec41f14f11e9fbfb5042d72d331c65f32b284cd09a"

    assert Token("00" * 8, "ab" * 32).secret_digest.hex() == digest


def test_the_digest_of_a_request() -> None:
    """The fingerprint beside an Idempotency-Key: keys sorted, no spaces, ASCII alone."""
    body = {"b": "café", "a": [1, 2.5, None, True]}
    digest = "737ec154c9993434c38169dcdaaa2be649a814c768a0821476be0bd08e8e4280"

    assert request_digest("POST", "/threads/t/runs", body) == digest


def test_a_cursor() -> None:
    """Its MAC covers the length and the words of what is listed, and the payload."""
    listing = Listing("t1", "admin/keys", {"status": "live", "order": "newest"})

    assert CursorSigner(b"s" * 32).sign(Cursor((12, "b"), True), listing) == (
        "xnB5rF9rLJo7N8nSAV9Vi1tbMTIsImIiXSx0cnVlXQ"
    )


def sealed_rows() -> list[Row]:
    """Two rows under a seal, which fill every field that the root covers."""
    other = Row(
        unit=UnitKind.CLAUSE,
        cls="instruction",
        canon="never call after nine",
        text="Never call after nine.",
        status=Status.KEPT_VERBATIM,
        sources=(Source(4, 0, 0, 20, 42), Source(6, 1, 2, 0, 22)),
        role=Role.HUMAN,
        trust=Trust.USER,
        salience=0.25,
        negative=True,
        kept_in=Place("seg-1", None, 0, 0, 3, 25),
        promotion_id="promo-1",
        survived=("c-1",),
        lost_at="c-2",
    )
    return seal_rows([msgspec.structs.replace(AMOUNT), other], b"k" * 32)


def test_the_seal_of_ledger_rows() -> None:
    """Salts, digests of the words, and digests of what lies beside them."""
    one, other = sealed_rows()

    assert one.salt == "d1bf955230a0ffd8fcc6f3180004804a"
    assert other.salt == "6cf4c6842639e01063916ed3c5ccc0eb"
    assert one.digest == "7b0273feb480cb1486d2613886f34d780043761b5987f73615f9b743bc473339"
    assert other.digest == "a8f9db26fd9a48b242eee56918ff3cb1e497b729469ffa22a7455b66a36d5740"
    assert one.aside == "4367a6416f2f7ae41ec97edca7d2fcec16a74d55616649503eb76540ae014957.-"
    assert other.aside == "-.316ec22745142969965425f5720d8c689d3659be20ee92aa660c8d19270b76bd"


def test_the_root_of_a_ledger() -> None:
    """Over the root before it and every row in order."""
    assert LEDGER_GENESIS == "b9a734f1207aba08608f8bde45336b882eddefaf225007882a3ef90e47759668"
    assert root_of(sealed_rows(), LEDGER_GENESIS) == "f123ba51b198576ec148edb0b5b7aa4380d822bcfa28d078ba96b2740a046ae8"


def test_the_root_of_a_ledger_from_before_rows_had_an_aside() -> None:
    """Its rows have fewer fields under the root."""
    salt = "d1bf955230a0ffd8fcc6f3180004804a"
    row = msgspec.structs.replace(AMOUNT, salt=salt, digest=content_digest(salt, AMOUNT.canon, AMOUNT.text))

    assert root_of([row], "a" * 64) == "42df23f3a5255f04afd605ede237662aee6e18e3dfaa252e96a6ab4c2493e960"


def test_the_ids_of_ledger_rows() -> None:
    """The name under which a drop is asked for."""
    assert row_id_of(RowKey(UnitKind.ATOM, "amount", "EUR 500")) == "dd36f519f1d203a4e079d899"


def test_the_content_digest_of_an_entry() -> None:
    """What a message holds: who speaks, its parts, its calls, what it answers and whether that failed."""
    entry = SourceEntry(
        seq=9,
        role=Role.AI,
        name="ann",
        parts=(Part(text="Hi"),),
        calls=(Call(call_id="c1", name="look"),),
        answers=("c0",),
        failed=True,
    )

    assert entry.digest() == "04d1f929e78a73c07007caa2cd48ad3409b1a532e616ffbe7271aab8ec9b9e51"


def test_the_digests_of_views() -> None:
    """The signature of what a segment covers, and the hash of what the model is sent."""
    entries = [
        SourceEntry(seq=1, role=Role.HUMAN, parts=(Part(text="Hi"),), tokens=3),
        SourceEntry(seq=2, role=Role.AI, parts=(Part(text="Yo"),), tokens=2),
    ]

    assert signature_of([1, 4], {4: 2}) == "822462e477db3a54f2b7f44f0c9f815b209be2153f522312b91a45b4510442ac"
    assert (
        render(first_view("v"), entries, {}).render_hash
        == "ac1b0a2775e85d6c5cf5b47a8b5bd47d89d56b9ff689e00151204a4321008ecd"
    )


def test_the_fingerprint_of_an_order_to_compact() -> None:
    """It distinguishes a repeated key from a key of another order; an absent cap in money is not in it."""
    rules = Rules(
        critical_atoms=frozenset({"moment", "amount"}),
        critical_clauses=frozenset(),
        excluded_classes=frozenset({"name"}),
    )
    order = Order(key="k1", policy=Policy(rules=rules), requested_by="ann", base_tokens=7)

    assert order.fingerprint("thread-1") == "5b9bcc3f38adf3c8b5472752533f3bbf7457c6c75c5692bf0e912dfa39199633"


@pytest.mark.parametrize(
    ("changes", "cardinality", "digest"),
    [
        (
            {"subject": "ann", "attribute": "city", "value": "Oslo"},
            Cardinality.ONE,
            "ca72da33ca4a19eadad1522d86b0dc2ac4c75b0ac60eb68ff5aa9fd8a84c91d6",
        ),
        ({}, None, "7b35a6e52a97129a586f7ef4cbed5ab675fcd3d43d2d7cef9c63fd86af5627a8"),
        ({"text": "hello", "kind": "turn"}, None, "aecb13542f17212b13c8a1ec07dced28862ab3755c74b9c89b46316cc432c4fe"),
        (
            {
                "subject": "ann",
                "attribute": "trip",
                "value": "Oslo",
                "valid_from": datetime(1970, 1, 1, microsecond=5, tzinfo=UTC),
                "valid_to": datetime(1970, 1, 1, microsecond=9, tzinfo=UTC),
            },
            Cardinality.EVENT,
            "c6fd3272eb6fcf328a7a9afe9440dab2f3309f6940d277a7ab5e6a871ad83983",
        ),
    ],
)
def test_the_digest_of_a_statement(changes: dict[str, Any], cardinality: Cardinality | None, digest: str) -> None:
    """What makes a statement the same statement, for those that were remembered before."""
    now = datetime(2026, 5, 4, tzinfo=UTC)
    said: dict[str, Any] = {"namespace": ("users", "7"), "text": "the gate code is 4", "observed_at": now}
    scope = Scope(tenant_id="acme", namespace=("users",))

    assert prepare(Draft(**said | changes), scope, now, cardinality).digest == digest


def test_the_digests_of_where_a_statement_comes_from() -> None:
    """The moment that was quoted, and the quoted words."""
    origin = Origin(thread_ref="thread-1", seq=4, message_ref="m-é", char_from=0, char_to=9)

    assert origin.key == "a3edbaf10503faeff687b04e30cc75c73f331a0dd89a4c228cd0ff99b45f110f"
    assert quote_hash("Ann moved to Köln") == "672eae541315ae83fce08ae008a43aa897244af4482e36fe51291ef6f621c5cc"


def test_the_digests_in_an_index() -> None:
    """An index of before holds these tags and digests; others would hide every entry from every scope."""
    document = IndexDocument(
        number=1,
        assertion_id="id-1",
        tags=frozenset({"t2", "t1"}),
        words=["kayak"],
        words_before=["red"],
        dense_text="a kayak",
    )

    assert tag("subject", "anna") == "5886fc1051c7b7dc0a407407"
    assert document.digest == "d052aa91782376e42d9cdee4f388dffe"
