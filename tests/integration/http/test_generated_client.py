"""A client generated from the OpenAPI document works: it is made without a warning, and reads what the server says."""

import importlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.support.agent_server import TIMEOUT_S, Running, run_server, said
from tests.support.generated_client import GeneratedClient, generate

PACKAGE = "client_made_from_the_document"
NOBODY = UUID("00000000-0000-4000-8000-000000000000")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    """A real server on a port, with a worker."""
    async with run_server(tmp_path / "data") as running:
        yield running


@pytest.fixture
async def client(server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[GeneratedClient]:
    """A client made from the document that the server hands out."""
    async with server.http() as http:
        document: dict[str, Any] = (await http.get("/openapi.json")).json()
    await generate(document, tmp_path, PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    made: Any = importlib.import_module(PACKAGE).AuthenticatedClient(
        base_url=server.url, token=server.key, timeout=TIMEOUT_S
    )
    async with made as session:
        yield GeneratedClient(PACKAGE, session)
    for name in [each for each in sys.modules if each.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


async def test_a_generated_client_calls_the_api(client: GeneratedClient) -> None:
    """Threads, runs and their streams, selected rows, states and memories: answers are typed objects."""
    info = await client.call("info.info")
    assert (info.status_code, info.parsed.server) == (200, "threadmark")

    # A body that may be left out.
    thread = (await client.call("threads.create_thread")).parsed
    assert isinstance(thread.thread_id, UUID)
    assert thread.values is None

    run = client.model("RunBody", {"assistant_id": "chat", "input": said("hello")})
    streamed = await client.call("threads.stream_run", thread.thread_id, body=run)
    assert "event: values" in streamed.parsed

    outcome = await client.call("threads.wait_run", thread.thread_id, body=run)
    assert len(outcome.parsed["messages"]) == 4

    # Rows of which only one member was selected.
    search = client.model("ThreadSearch", {"select": ["thread_id"]})
    (found,) = (await client.call("threads.find_threads", body=search)).parsed
    assert found.to_dict() == {"thread_id": str(thread.thread_id)}

    runs = (await client.call("threads.list_thread_runs", thread.thread_id, limit=1)).parsed
    assert [each.status for each in runs] == ["success"]
    read = (await client.call("threads.read_run", thread.thread_id, runs[0].run_id)).parsed
    assert (read.run_id, read.created_at) == (runs[0].run_id, runs[0].created_at)
    assert read.created_at.tzinfo is not None

    state = (await client.call("threads.read_state", thread.thread_id)).parsed
    assert state.checkpoint.thread_id == thread.thread_id

    items = {"items": [{"namespace": ["guests"], "text": "Ada drinks tea."}]}
    remembered = (await client.call("memories.remember", body=client.model("MemoryItems", items))).parsed
    question = client.model("RecallQuestion", {"namespace": ["guests"], "query": "What does Ada drink?"})
    recalled = (await client.call("memories.recall", body=question)).parsed
    assert [(each.text, each.memory_id) for each in recalled.answers] == [
        ("Ada drinks tea.", remembered.items[0].memory_id)
    ]


async def test_a_generated_client_reads_refusals(client: GeneratedClient) -> None:
    """Every documented status has a typed body; a status without a body is no error."""
    missing = await client.call("threads.read_thread", NOBODY)
    assert (missing.status_code, missing.parsed.code) == (404, "not_found")

    thread = (await client.call("threads.create_thread")).parsed
    twin = client.model("NewThread", {"thread_id": str(thread.thread_id)})
    assert (await client.call("threads.create_thread", body=twin)).parsed.code == "thread_exists"

    policy = client.model("PolicyBody", {"keep_last_turns": 3})
    made = await client.call("compaction_policies.put_policy", "short", body=policy)
    assert (made.status_code, made.parsed.version) == (201, 1)
    moved = await client.call("compaction_policies.put_policy", "short", body=policy, if_match='"7"')
    assert (moved.status_code, moved.parsed.code) == (412, "precondition_failed")

    unknown = client.model("RunBody", {"assistant_id": "nobody", "input": said("hello")})
    refused = await client.call("threads.create_run", thread.thread_id, body=unknown)
    assert refused.status_code >= 400
    assert refused.parsed.request_id

    labels = client.model("Labels", {"metadata": {"vip": True}})
    quiet = await client.call("threads.update_thread", thread.thread_id, body=labels, prefer="return=minimal")
    assert (quiet.status_code, quiet.parsed) == (204, None)
