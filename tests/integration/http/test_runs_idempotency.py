"""The same request twice: one run, one response; and how another request with the same key is refused."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_server import Running, run_server, said
from tests.support.api import Api
from tests.support.paced_model import PacedModel, serve_paced_model
from threadmark.app.access import Scope

DAY_S = 24 * 3600
BODY = b'{"assistant_id": "chat", "metadata": {"a": 1, "b": 2}}'
REORDERED = b'{"metadata":{"b":2,"a":1},"assistant_id":"chat"}'
CHANGED = b'{"assistant_id": "chat", "metadata": {"a": 1, "b": 3}}'


@pytest.fixture
async def key(api: Api) -> str:
    """A key that reads and runs."""
    return await api.key(Scope.READ, Scope.RUN)


@pytest.fixture
async def model() -> AsyncIterator[PacedModel]:
    """A model that says its words when the test lets it."""
    async with serve_paced_model() as model:
        yield model


@pytest.fixture
async def paced(model: PacedModel, tmp_path: Path) -> AsyncIterator[Running]:
    """A server that asks the paced model."""
    async with run_server(tmp_path, model.environment) as running:
        yield running


async def thread(api: Api, key: str) -> str:
    """A new thread."""
    return str((await api.call("POST", "/threads", key)).json()["thread_id"])


async def post(api: Api, key: str, path: str, body: bytes, idempotency_key: str) -> Any:
    """The answer to one request with a key."""
    headers = {"idempotency-key": idempotency_key, "content-type": "application/json"}
    return await api.call("POST", path, key, content=body, headers=headers)


async def run_count(api: Api, key: str, thread_id: str) -> int:
    """Runs of the thread."""
    return len((await api.call("GET", f"/threads/{thread_id}/runs", key)).json())


async def test_the_same_request_is_answered_with_the_same_run(api: Api, key: str) -> None:
    """Also with its keys in another order: stored status, body and place, marked as a replay."""
    where = await thread(api, key)
    path = f"/threads/{where}/runs"

    first = await post(api, key, path, BODY, "k1")
    again = await post(api, key, path, BODY, "k1")
    reordered = await post(api, key, path, REORDERED, "k1")

    assert "idempotent-replayed" not in first.headers
    for answer in (again, reordered):
        assert (answer.status_code, answer.content) == (200, first.content)
        assert answer.headers["idempotent-replayed"] == "true"
        assert answer.headers["content-location"] == first.headers["content-location"]
    assert await run_count(api, key, where) == 1


async def test_another_request_with_the_key_is_refused(api: Api, key: str) -> None:
    """A changed body, another thread, another way to follow the run: 422, and nothing is run."""
    where, elsewhere = await thread(api, key), await thread(api, key)
    await post(api, key, f"/threads/{where}/runs", BODY, "k1")

    for path, body in (
        (f"/threads/{where}/runs", CHANGED),
        (f"/threads/{elsewhere}/runs", BODY),
        (f"/threads/{where}/runs/wait", BODY),
        (f"/threads/{where}/runs/stream", BODY),
        ("/runs", BODY),
        ("/threads", b"{}"),
    ):
        answer = await post(api, key, path, body, "k1")
        assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")
    assert (await run_count(api, key, where), await run_count(api, key, elsewhere)) == (1, 0)


async def test_keys_of_tenants_do_not_meet(api: Api, key: str) -> None:
    """Another tenant's request with the same key is its own."""
    other = await api.key(Scope.READ, Scope.RUN, tenant_id="other")
    where = await thread(api, other)
    await post(api, key, f"/threads/{await thread(api, key)}/runs", BODY, "k1")

    answer = await post(api, other, f"/threads/{where}/runs", CHANGED, "k1")

    assert answer.status_code == 200
    assert "idempotent-replayed" not in answer.headers


@pytest.mark.parametrize("bad", ["", "k" * 256, "a b", "k\u00e9"])
async def test_a_bad_key_is_refused(api: Api, key: str, bad: str) -> None:
    """400, and nothing is run."""
    where = await thread(api, key)
    headers = [(b"idempotency-key", bad.encode("latin-1"))]

    answer = await api.client.post(
        f"/threads/{where}/runs", content=BODY, headers=[*headers, (b"x-api-key", key.encode())]
    )

    assert (answer.status_code, answer.json()["code"]) == (400, "bad_idempotency_key")
    assert await run_count(api, key, where) == 0


async def test_a_key_lives_for_a_day(api: Api, key: str) -> None:
    """Up to 24 hours it stands for its request; a run that made its thread is kept as long."""
    where = await thread(api, key)
    first = await post(api, key, f"/threads/{where}/runs", BODY, "k1")
    stateless = await post(api, key, "/runs", BODY, "k2")
    await api.call("POST", f"{stateless.headers['content-location']}/cancel", key)

    api.hands.pass_s(DAY_S - 1)
    await _tidy(api)
    assert (await post(api, key, f"/threads/{where}/runs", BODY, "k1")).content == first.content
    assert (await post(api, key, "/runs", BODY, "k2")).content == stateless.content

    api.hands.pass_s(DAY_S)
    await _tidy(api)
    later = await post(api, key, f"/threads/{where}/runs", CHANGED, "k1")
    assert (later.status_code, "idempotent-replayed" in later.headers) == (200, False)


async def test_a_refused_request_uses_no_key_up(api: Api, key: str) -> None:
    """What changed nothing may be corrected and sent again with the same key."""
    where = await thread(api, key)
    busy = b'{"assistant_id": "chat", "multitask_strategy": "reject"}'
    await post(api, key, f"/threads/{where}/runs", BODY, "k0")

    refused = await post(api, key, f"/threads/{where}/runs", busy, "k1")
    corrected = await post(api, key, f"/threads/{where}/runs", BODY, "k1")

    assert (refused.status_code, corrected.status_code) == (409, 200)


async def test_of_equal_requests_at_once_one_runs(api: Api, key: str) -> None:
    """Twenty at the same time: one run, and every response names it."""
    where = await thread(api, key)

    answers = await asyncio.gather(*(post(api, key, f"/threads/{where}/runs", BODY, "k1") for _ in range(20)))

    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert [answer.headers.get("idempotent-replayed") for answer in answers].count("true") == 19
    assert await run_count(api, key, where) == 1


async def test_a_batch_is_made_once(api: Api, key: str) -> None:
    """The whole batch is one request."""
    first = await post(api, key, "/runs/batch", b"[" + BODY + b"," + CHANGED + b"]", "k1")
    again = await post(api, key, "/runs/batch", b"[" + REORDERED + b"," + CHANGED + b"]", "k1")

    assert (again.status_code, again.content) == (200, first.content)
    assert again.headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize("where", ["/threads/{thread}/runs/wait", "/runs/wait"])
async def test_a_wait_in_progress_is_to_be_asked_for_again(paced: Running, model: PacedModel, where: str) -> None:
    """409 with `Retry-After` while the run goes on; then the same bytes, for as long as the key lives."""
    path = where.format(thread=await paced.thread())
    body = {"assistant_id": "chat", "input": said("hi")}
    async with paced.http() as http:
        headers = {"idempotency-key": "k1"}
        first = asyncio.create_task(http.post(path, json=body, headers=headers))
        reply = await model.next_call()
        early = await http.post(path, json=body, headers=headers)
        await reply.say("Done.")
        await reply.end()
        answer = await first
        again = await http.post(path, json=body, headers=headers)

    assert (early.status_code, early.json()["code"]) == (409, "idempotency_key_in_progress")
    assert early.headers["retry-after"] == "1"
    assert (again.status_code, again.content) == (200, answer.content.strip())
    assert again.headers["idempotent-replayed"] == "true"


async def test_a_wait_that_broke_off_is_answered_later(paced: Running, model: PacedModel) -> None:
    """Its client went; the run went on; the same request gets what the run came to, and no second run."""
    thread_id = await paced.thread()
    path, headers = f"/threads/{thread_id}/runs/wait", {"idempotency-key": "k1"}
    body = {"assistant_id": "chat", "input": said("hi")}
    async with paced.http() as http, http.stream("POST", path, json=body, headers=headers):
        reply = await model.next_call()
    await reply.say("Done.")
    await reply.end()
    (run,) = await paced.sdk.runs.list(thread_id)
    await paced.sdk.runs.join(thread_id, run["run_id"])

    async with paced.http() as http:
        answers = [await http.post(path, json=body, headers=headers) for _ in range(2)]

    assert [answer.headers.get("idempotent-replayed") for answer in answers] == ["true", "true"]
    assert answers[0].content == answers[1].content
    assert answers[0].json()["messages"][-1]["content"] == "Done."
    assert len(await paced.sdk.runs.list(thread_id)) == 1


async def test_a_stream_is_streamed_again_once_its_run_is_over(paced: Running, model: PacedModel) -> None:
    """409 before; then the very same events, from the journal."""
    path = f"/threads/{await paced.thread()}/runs/stream"
    body = {"assistant_id": "chat", "input": said("hi"), "stream_mode": ["messages", "values"]}
    async with paced.http() as http:
        headers = {"idempotency-key": "k1"}
        first = asyncio.create_task(http.post(path, json=body, headers=headers))
        reply = await model.next_call()
        early = await http.post(path, json=body, headers=headers)
        await reply.say("One ", "two.")
        await reply.end()
        streamed = await first
        again = await http.post(path, json=body, headers=headers)

    assert (early.status_code, early.headers["retry-after"]) == (409, "1")
    assert (again.status_code, again.content) == (200, streamed.content)
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["content-location"] == streamed.headers["content-location"]


async def _tidy(api: Api) -> None:
    """What a worker does every now and then."""
    from threadmark.state import finish_deletions, prune, purge_expired

    now_us = api.resources.wired.now_us()
    deletions = await api.resources.database.write(lambda connection: purge_expired(connection, now_us, 100))
    await finish_deletions(api.resources.database, deletions)
    await api.resources.database.write(lambda connection: prune(connection, now_us))
