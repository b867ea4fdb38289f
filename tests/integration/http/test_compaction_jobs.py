"""/admin/compaction-jobs: many threads at once, followed, paused, resumed, cancelled, carried on after a restart."""

import json
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.agent_server import Running, run_server
from tests.support.api import Api
from tests.support.compacting import FACTS, POLICY
from tests.support.waiting import wait_until
from threadmark.app.access import Scope
from threadmark.workers.tasks import compaction_job

JOBS = "/admin/compaction-jobs"
NOBODY = "01a22812-7193-7bcd-8304-da4549f015ef"
FILLER = "And now a long story about nothing in particular, which nobody will ever need again. " * 12
THREAD_COUNT = 9


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    """A server with a worker."""
    async with run_server(tmp_path) as running:
        yield running


async def threads(running: Running, count: int = THREAD_COUNT, **metadata: Any) -> list[str]:
    """Threads that are worth compacting."""
    ids = []
    for number in range(count):
        thread_id = str((await running.sdk.threads.create(metadata=metadata))["thread_id"])
        for turn in range(4):
            asked = {"role": "user", "content": f"{FACTS[(number + turn) % len(FACTS)]} {FILLER}"}
            for each in (asked, {"role": "assistant", "content": f"Noted. {FILLER}"}):
                await running.sdk.threads.update_state(thread_id, {"messages": [each]})
        ids.append(thread_id)
    return ids


async def begun(http: httpx.AsyncClient, **job: Any) -> str:
    """The id of a new job."""
    made = await http.post(JOBS, json={"policy": POLICY, **job})
    assert made.status_code == 202, made.text
    return str(made.json()["job_id"])


async def becomes(http: httpx.AsyncClient, job_id: str, *statuses: str) -> dict[str, Any]:
    """The job, once it has one of the statuses."""

    async def has_it() -> dict[str, Any] | None:
        job = dict((await http.get(f"{JOBS}/{job_id}")).json())
        return job if job["status"] in statuses else None

    return await wait_until(has_it, description=f"the job to be {statuses}", timeout_s=60) or {}


async def test_a_job_compacts_every_thread_once(running: Running) -> None:
    """Each thread has its outcome, and the totals are theirs; the stream ends with the job."""
    mine, others = await threads(running, team="red"), await threads(running, 1, team="blue")
    async with running.http() as http:
        job_id = await begun(http, filter={"metadata": {"team": "red"}}, concurrency=2)
        events = (await http.get(f"{JOBS}/{job_id}/events")).text.split("\r\n\r\n")
        done = await becomes(http, job_id, "done")

        outcomes: list[dict[str, Any]] = []
        query: dict[str, Any] = {"limit": 4}
        while True:
            page = (await http.get(f"{JOBS}/{job_id}/threads", params=query)).json()
            outcomes += page["items"]
            if page["next"] is None:
                break
            query["cursor"] = page["next"]
        untouched = (await http.get(f"/threads/{others[0]}/compactions")).json()["items"]

    progress = done["progress"]
    assert (progress["thread_count"], progress["done_count"]) == (THREAD_COUNT, THREAD_COUNT)
    assert progress["outcomes"] == {"committed": THREAD_COUNT}
    assert sorted(each["thread_id"] for each in outcomes) == sorted(mine)
    assert {(each["status"], each["trigger"]) for each in outcomes} == {("committed", "bulk")}
    assert progress["tokens_after"] == sum(each["tokens_after"] for each in outcomes) < progress["tokens_before"]
    assert untouched == []
    names = [event.splitlines()[0] for event in events if event]
    assert (names[0], names[-1], names.count("event: end")) == ("event: progress", "event: end", 1)
    counts = [json.loads(event.splitlines()[1][6:])["progress"] for event in events if event.startswith("event: p")]
    done_counts = [each["done_count"] for each in counts if each]
    assert done_counts == sorted(done_counts)


async def test_a_dry_run_changes_no_thread(running: Running) -> None:
    """It reports the expected savings thread by thread, as a dry run of each alone does."""
    (thread_id,) = await threads(running, 1)
    async with running.http() as http:
        done = await becomes(http, await begun(http, dry_run=True), "done")

        assert done["progress"]["outcomes"] == {"would_commit": 1}
        assert done["progress"]["tokens_after"] < done["progress"]["tokens_before"]
        (planned,) = (await http.get(f"{JOBS}/{done['job_id']}/threads")).json()["items"]
        alone = (await http.post(f"/threads/{thread_id}/compactions", json={"policy": POLICY, "dry_run": True})).json()
        # The summary bears an id, and ids differ by a few tokens.
        own = {name: planned[name] for name in ("tokens_after", "trigger", "requested_by")}
        assert planned == {**alone, **own}
        assert (own["trigger"], own["tokens_after"]) == ("bulk", done["progress"]["tokens_after"])
        assert (await http.get(f"/threads/{thread_id}/compactions")).json()["items"] == []


async def test_a_dry_run_says_why_a_thread_would_be_left(running: Running) -> None:
    """In the words of a dry run of that thread alone."""
    (thread_id,) = await threads(running, 1)
    policy = {"keep_last_turns": 100}
    async with running.http() as http:
        done = await becomes(http, await begun(http, dry_run=True, policy=policy), "done")
        (left,) = (await http.get(f"{JOBS}/{done['job_id']}/threads")).json()["items"]
        alone = (await http.post(f"/threads/{thread_id}/compactions", json={"policy": policy, "dry_run": True})).json()

    assert (left["error_code"], left["error"]) == (alone["error_code"], alone["error"])
    assert left["error"].startswith("nothing to do (nothing_to_cover): the request has ")


async def test_a_job_is_paused_resumed_and_outlives_the_server(tmp_path: Path) -> None:
    """Each thread is compacted once, by any worker and after any number of stops."""
    async with run_server(tmp_path) as running, running.http() as http:
        ids = await threads(running)
        job_id = await begun(http, concurrency=1)
        paused = (await http.post(f"{JOBS}/{job_id}/pause")).json()
        assert paused["status"] == "paused"
        assert (await http.post(f"{JOBS}/{job_id}/resume")).json()["status"] in ("pending", "running")
        assert (await http.post(f"{JOBS}/{job_id}/resume")).status_code == 409

        async def is_under_way() -> bool:
            found = (await http.get(f"{JOBS}/{job_id}")).json()
            return bool(found["progress"]) and found["progress"]["done_count"] > 0

        await wait_until(is_under_way, description="the first threads to be done", timeout_s=30)
        key = running.key
    async with run_server(tmp_path) as again, again.http(key) as http:
        done = await becomes(http, job_id, "done")
        assert done["progress"]["outcomes"] == {"committed": THREAD_COUNT}
        for thread_id in ids:
            assert len((await http.get(f"/threads/{thread_id}/compactions")).json()["items"]) == 1


async def test_a_job_without_money_stops_before_it_spends_any(running: Running) -> None:
    """Its bound is for all threads together, and is never passed."""
    await threads(running, 2)
    async with running.http() as http:
        job_id = await begun(http, summariser="model", prompt_tokens_max=10, policy={**POLICY, "prompt_tokens_max": 20})
        done = await becomes(http, job_id, "done")

    assert done["policy"]["prompt_tokens_max"] == 10
    assert done["progress"]["prompt_tokens"] <= 10


async def test_a_thread_that_is_compacted_later_counts_with_all_it_may_cost(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is over by then, and its bound holds nevertheless."""
    monkeypatch.setattr(compaction_job, "BUSY_COUNT_MAX", 1)
    monkeypatch.setattr(compaction_job, "BUSY_S", 0.0)
    (thread_id,) = await threads(running, 1)
    held = {"messages": 'call lookup_order {"order_id": "o-1", "delay_ms": 60000}'}
    run = await running.sdk.runs.create(thread_id, "refund", input=held)

    async def is_held() -> bool:
        return (await running.sdk.runs.get(thread_id, run["run_id"]))["status"] == "running"

    await wait_until(is_held, description="the run to begin")
    async with running.http() as http:
        job_id = await begun(http, summariser="model", prompt_tokens_max=700, policy={**POLICY})
        done = await becomes(http, job_id, "done")

    assert done["progress"]["outcomes"] == {"busy": 1}
    assert done["progress"]["prompt_tokens"] == 700


async def test_a_job_stops_before_its_money_is_passed(tmp_path: Path) -> None:
    """What each call may cost is set aside before it is made; the receipts add up to what the job says."""
    # Less than the six cost together, so that it ends the job whichever of them are under way at once.
    prices = {"THREADMARK_MODEL_PRICES": '{"offline": {"input": "2.50", "output": "10"}}'}
    async with run_server(tmp_path, prices) as running, running.http() as http:
        await threads(running, 6)
        job_id = await begun(http, summariser="model", cost_max="0.03", concurrency=2)
        done = await becomes(http, job_id, "done")
        shown = (await http.get(f"{JOBS}/{job_id}/threads")).json()["items"]

    progress = done["progress"]
    assert (done["cost_max"], progress["stopped_by"]) == ("0.03", "cost_max")
    assert Decimal(0) < Decimal(progress["cost"]) <= Decimal("0.03")
    assert sum(Decimal(each["cost"] or "0") for each in shown) == Decimal(progress["cost"])
    assert {each["status"] for each in shown} == {"committed", "aborted"}
    assert {each["error_code"] for each in shown if each["status"] == "aborted"} == {"cost_max"}


async def test_a_cap_in_money_needs_a_price(api: Api, admin: str) -> None:
    """422 with the place of the cap, in a job's own and in its policy's; excerpts cost nothing and need none."""
    for body, place in (
        ({"cost_max": "5"}, "$.cost_max"),
        ({"policy": {"cost_max": "0.25"}}, "$.policy.cost_max"),
    ):
        refused = await api.call("POST", JOBS, admin, json={**body, "summariser": "model"})
        assert (refused.status_code, place in refused.text) == (422, True), refused.text
        assert "THREADMARK_MODEL_PRICES has no price of 'offline'" in refused.json()["detail"]
        assert (await api.call("POST", JOBS, admin, json=body)).status_code == 202
    for amount in (0.5, "-1", "1e3", "0.1234567"):
        assert (await api.call("POST", JOBS, admin, json={"cost_max": amount})).status_code == 422


async def test_one_key_is_one_job(api: Api, admin: str) -> None:
    """The answer is replayed."""
    headers = {"idempotency-key": "nightly"}
    first = await api.call("POST", JOBS, admin, json={}, headers=headers)
    again = await api.call("POST", JOBS, admin, json={}, headers=headers)

    assert (first.status_code, again.status_code, again.content) == (202, 202, first.content)
    assert len((await api.call("GET", JOBS, admin)).json()["items"]) == 1


async def test_a_cancelled_job_is_over(api: Api, admin: str) -> None:
    """It is neither paused nor resumed any more."""
    job_id = (await api.call("POST", JOBS, admin, json={"concurrency": 1})).json()["job_id"]

    assert (await api.call("POST", f"{JOBS}/{job_id}/cancel", admin)).json()["status"] == "cancelled"
    for verb in ("pause", "resume"):
        assert (await api.call("POST", f"{JOBS}/{job_id}/{verb}", admin)).status_code == 409
    events = (await api.call("GET", f"{JOBS}/{job_id}/events", admin)).text
    assert [line for line in events.splitlines() if line.startswith("event")] == ["event: progress", "event: end"]


async def test_a_foreign_job_looks_like_one_that_never_was(api: Api) -> None:
    """404, on every route, and for a task that is no job too."""
    owner = await api.key(Scope.ADMIN, tenant_id="owner")
    stranger = await api.key(Scope.ADMIN, tenant_id="stranger")
    job_id = (await api.call("POST", JOBS, owner, json={})).json()["job_id"]
    routes = [("GET", ""), ("GET", "/threads"), ("GET", "/events")]
    for method, path in (*routes, ("POST", "/pause"), ("POST", "/resume"), ("POST", "/cancel")):
        foreign = await api.call(method, f"{JOBS}/{job_id}{path}", stranger)
        missing = await api.call(method, f"{JOBS}/{NOBODY}{path}", stranger)
        assert (foreign.status_code, missing.status_code) == (404, 404)
        texts = [each.text.replace(each.headers["x-request-id"], "") for each in (foreign, missing)]
        assert texts[0].replace(job_id, NOBODY) == texts[1]
    assert (await api.call("GET", JOBS, stranger)).json()["items"] == []
    assert (await api.call("GET", f"{JOBS}/{job_id}", owner)).json()["status"] == "pending"
