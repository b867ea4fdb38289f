"""A tutorial: a thread is compacted, its receipt read, what is gone is found again, and all of it comes back."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.agent_server import Running, call, contents, run_server, said
from tests.support.compacting import FACTS, POLICY
from tests.support.waiting import wait_until
from threadmark import ChatAgent, Registry, recall_dropped

FILLER = "And now a long story about nothing in particular, which nobody will ever need again. " * 12

registry = Registry([ChatAgent(name="chat", tools=[recall_dropped])])


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    """A server with an agent that can look for what was dropped."""
    async with run_server(tmp_path, {"THREADMARK_AGENTS": f"{__name__}:registry"}) as running:
        yield running


async def talked(running: Running) -> str:
    """A thread in which people said what matters, among much that does not."""
    thread_id = await running.thread()
    for fact in FACTS:
        await running.sdk.runs.wait(thread_id, "chat", input=said(f"{fact} {FILLER}"))
    return thread_id


async def compacted(http: httpx.AsyncClient, thread_id: str) -> dict[str, Any]:
    """A compaction in the background, once a worker has done it."""
    ordered = await http.post(f"/threads/{thread_id}/compactions", json={"policy": {**POLICY, "appendix_tokens": 0}})
    assert (ordered.status_code, ordered.json()["status"]) == (202, "planned")

    async def is_over() -> dict[str, Any] | None:
        found = dict((await http.get(f"/compactions/{ordered.json()['compaction_id']}")).json())
        return found if found["status"] not in ("planned", "summarising") else None

    return await wait_until(is_over, description="the compaction to be over", timeout_s=30) or {}


async def test_a_thread_is_compacted_and_brought_back(running: Running) -> None:
    """The view shrinks, the ledger balances and verifies, nothing is lost, and a restore shows every byte again."""
    thread_id = await talked(running)
    async with running.http() as http:
        whole = (await http.get(f"/threads/{thread_id}/view")).json()

        done = await compacted(http, thread_id)

        assert (done["status"], done["error"]) == ("committed", None)
        view = (await http.get(f"/threads/{thread_id}/view")).json()
        assert view["tokens"] == done["tokens_after"] < done["tokens_before"] == whole["tokens"]
        assert (await http.get(f"/compactions/{done['compaction_id']}/verify")).json()["holds"]
        rows = (await http.get(f"/compactions/{done['compaction_id']}/ledger")).text.splitlines()
        assert len(rows) == sum(each["total"] + each.get("introduced", 0) for each in done["ledger"].values())
        # The journal is never shortened: what was said is all there.
        assert len(await running.messages(thread_id)) == 2 * len(FACTS)

        restore = {"scope": "all"}
        await http.post(f"/compactions/{done['compaction_id']}/restore", json=restore)
        back = (await http.get(f"/threads/{thread_id}/view")).json()
        assert (back["render_hash"], back["tokens"]) == (whole["render_hash"], whole["tokens"])


async def test_an_agent_finds_what_was_dropped(running: Running) -> None:
    """Its tool quotes the journal, as data; the call is a step like any other."""
    thread_id = await talked(running)
    async with running.http() as http:
        done = await compacted(http, thread_id)
        drops = (await http.get(f"/compactions/{done['compaction_id']}/drops", params={"limit": 200})).json()["items"]
        assert any("INV-000412" in each["text"] for each in drops)

    asked: Any = await running.sdk.runs.wait(thread_id, "chat", input=said(call("recall_dropped", query="INV-000412")))

    (result,) = [json.loads(str(each)) for each in contents(asked) if str(each).startswith('{"about"')]
    assert "data" in result["about"]
    best = result["answers"][0]
    assert "INV-000412" in best["before"] + best["text"] + best["after"]
    assert (best["role"], best["trust"]) == ("human", "user")
