"""Between the journal's messages and a compaction's entries nothing is lost."""

from typing import Any

import pytest

from threadmark.compaction import PartKind, Role, Trust, first_view, render, source_entry, view_messages
from threadmark.state import Message, ToolCall

MESSAGES = [
    Message(id="m1", type="system", content="You are careful."),
    Message(id="m2", type="human", content="Where is order 4711?", name="anna"),
    Message(
        id="m3", type="ai", content="", tool_calls=(ToolCall("c1", "lookup", {"id": 4711, "nested": {"a": [1, None]}}),)
    ),
    Message(id="m4", type="tool", content="no such order", tool_call_id="c1", name="lookup", status="error"),
    Message(
        id="m5",
        type="human",
        content=[{"type": "text", "text": "See:"}, {"type": "image_url", "image_url": {"url": "x"}}],
    ),
    Message(id="m6", type="ai", content="I see a receipt."),
]


def test_an_uncompacted_view_is_the_transcript() -> None:
    """Message for message: type, content, name, calls, results and their status."""
    entries = [source_entry(message, seq) for seq, message in enumerate(MESSAGES, start=1)]
    sent = view_messages(render(first_view("v"), entries, {}))
    assert [(m.type, m.content, m.name, m.tool_calls, m.tool_call_id, m.status) for m in sent] == [
        (m.type, m.content, m.name, m.tool_calls, m.tool_call_id, m.status) for m in MESSAGES
    ]
    assert len({message.id for message in sent}) == len(sent)


def test_blocks_are_known_by_kind_size_and_digest() -> None:
    """A picture is a media part, encrypted reasoning an opaque one; neither has text to read."""
    blocks: list[dict[str, Any]] = [
        {"type": "image_url", "image_url": {"url": "x"}},
        {"type": "reasoning", "encrypted_content": "zz"},
    ]
    entry = source_entry(Message(id="m", type="ai", content=blocks), 3)
    assert [part.kind for part in entry.parts] == [PartKind.MEDIA, PartKind.OPAQUE]
    assert all(part.digest and part.size and not part.text for part in entry.parts)
    assert list(entry.texts()) == []


@pytest.mark.parametrize(
    ("kind", "trust"), [("system", Trust.OPERATOR), ("human", Trust.USER), ("ai", Trust.AGENT), ("tool", Trust.TOOL)]
)
def test_trust_comes_from_who_speaks(kind: str, trust: Trust) -> None:
    """Unless the journal knows better."""
    message = Message(id="m", type=kind, content="x")  # type: ignore[arg-type]
    assert source_entry(message, 1).trusted is trust
    assert source_entry(message, 1, trust=Trust.WEB).trusted is Trust.WEB
    assert source_entry(message, 1).role is Role(kind)
