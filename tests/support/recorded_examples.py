"""Writes the examples of the OpenAPI document: `python -m tests.support.recorded_examples`.

They are what a client said and a server answered in the story below; nothing of them is made up. Record them anew when
a shape has changed; `tests/integration/http/test_openapi.py` says when.
"""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import httpx

from tests.support.agent_server import call, run_server, said
from tests.support.described import Document
from threadmark.app.openapi.document import EXAMPLES

__all__ = ["play", "recorded"]

#: A longer answer shows no more than a short one (characters).
_CHARS_MAX = 6_000


async def recorded(folder: Path) -> dict[str, Any]:
    """The first good answer to each operation of the story, with its request."""
    found: dict[str, Any] = {}
    async with run_server(folder) as running:
        async with running.http() as http:
            document = Document((await http.get("/openapi.json")).json())

        async def keep(response: httpx.Response) -> None:
            await response.aread()
            document.check(response)
            if response.is_success:
                _keep(found, document, response)

        async with running.http(event_hooks={"response": [keep]}) as http:
            await play(http)
    return found


def _keep(found: dict[str, Any], document: Document, response: httpx.Response) -> None:
    request = response.request
    item = document.plain["paths"][document.path_of(request.url.path)]
    operation = found.setdefault(item[request.method.lower()]["operationId"], {})
    if request.content and "request" not in operation:
        operation["request"] = json.loads(request.content)
    is_json = response.headers.get("content-type") == "application/json"
    if response.content and len(response.text) <= _CHARS_MAX:
        answer = response.json() if is_json else response.text
        operation.setdefault("answers", {}).setdefault(str(response.status_code), answer)


async def play(http: httpx.AsyncClient) -> None:
    """A guest asks for a refund, a person approves it, and what was said is remembered and compacted."""
    thread = (await http.post("/threads", json={"metadata": {"guest": "Ada"}})).json()["thread_id"]
    ask = {"assistant_id": "refund", "input": said(call("refund", order_id="A-17", amount_cents=1250))}
    await http.post(f"/threads/{thread}/runs/wait", json=ask)
    (wait,) = (await http.get(f"/threads/{thread}/waits")).json()["items"]
    answered = (await http.post(f"/waits/{wait['wait_id']}/answer", json={"answer": True})).json()
    run = f"/threads/{thread}/runs/{answered['run_id']}"
    for path in (f"{run}/join", run, f"/runs/{answered['run_id']}/steps"):
        await http.get(path)
    hello = {"assistant_id": "chat", "input": said("hello"), "stream_mode": "updates"}
    await http.post("/runs", json=hello)
    await http.post("/runs/stream", json=hello)
    started = (await http.post(f"/threads/{thread}/runs", json={**ask, "input": said("thank you")})).json()
    await http.get(f"/threads/{thread}/runs/{started['run_id']}/join")
    await http.patch(f"/threads/{thread}", json={"metadata": {"order": "A-17"}})
    for path in ("", "/state", "/history?limit=1", "/journal?limit=2", "/runs?limit=1", "/journal/verify"):
        await http.get(f"/threads/{thread}{path}")
    await http.post("/threads/search", json={"metadata": {"guest": "Ada"}, "select": ["thread_id", "status"]})
    await _remember(http)
    await _compact(http, thread)
    for path in ("/ok", "/info"):
        await http.get(path)


async def _remember(http: httpx.AsyncClient) -> None:
    item = {"namespace": ["guests", "ada"], "text": "Ada drinks tea.", "subject": "Ada", "attribute": "drink"}
    remembered = (await http.post("/memories", json={"items": [item]})).json()
    memory = f"/memories/{remembered['items'][0]['memory_id']}"
    await http.post("/memories/recall", json={"namespace": ["guests"], "query": "What does Ada drink?"})
    for path in (memory, f"{memory}/history", f"{memory}/provenance", "/memories?namespace=guests"):
        await http.get(path)
    await http.post(f"{memory}/retract", json={"reason": "She drinks coffee now."})
    await http.post(f"{memory}/undo")
    document = {"namespace": ["settings"], "key": "ada", "value": {"language": "en"}}
    await http.put("/store/items", json=document)
    await http.get("/store/items", params={"namespace": "settings", "key": "ada"})
    await http.post("/store/items/search", json={"namespace_prefix": ["settings"]})


async def _compact(http: httpx.AsyncClient, thread: str) -> None:
    await http.put("/compaction-policies/short", json={"keep_last_turns": 1, "min_gain": 0.0})
    await http.get("/compaction-policies/short")
    text = "The order A-17 of 12.50 EUR was sent to Jane Doe on 2026-03-01. " * 30
    await http.post(f"/threads/{thread}/state", json={"values": {"messages": [{"role": "user", "content": text}]}})
    for line in ("and the next?", "and then?"):
        await http.post(f"/threads/{thread}/runs/wait", json={"assistant_id": "chat", "input": said(line)})
    order = {"policy": {"keep_last_turns": 1, "target_tokens": 200, "min_gain": 0.0}, "wait": True}
    made = (await http.post(f"/threads/{thread}/compactions", json=order)).json()
    found = (await http.get(f"/threads/{thread}/drops", params={"q": "A-17", "limit": 1})).json()
    assert made["status"] == "committed", made
    for each in found["items"]:
        await http.get(f"/drops/{each['drop_id']}/source", params={"context": 0})
    for path in (f"/compactions/{made['compaction_id']}", f"/compactions/{made['compaction_id']}/verify"):
        await http.get(path)
    await http.get(f"/threads/{thread}/view")


def _record() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(recorded(Path(folder)))
    EXAMPLES.write_text(json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


if __name__ == "__main__":
    _record()
