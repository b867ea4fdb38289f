"""Steps over HTTP: who did what, how often, for how many tokens; and settling what is in doubt after a kill."""

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.service import Service
from tests.support.waiting import wait_until

#: How long the call takes that is killed in its middle; the test does not wait for it.
LONG_MS = 60_000


async def steps(service: Service, run_id: str, **query: Any) -> dict[str, Any]:
    """The steps of a run's execution."""
    async with service.http() as http:
        response = await http.get(f"/runs/{run_id}/steps", params=query)
    assert response.status_code == 200, response.text
    return dict(response.json())


async def step(service: Service, run_id: str, key: str) -> dict[str, Any]:
    """One step of a run's execution; empty while there is none of this key."""
    return next((each for each in (await steps(service, run_id))["items"] if each["key"] == key), {})


async def resolve(service: Service, run_id: str, key: str, body: Any, **headers: str) -> Any:
    """The response to a resolution."""
    async with service.http(headers_too=headers) as http:
        return await http.post(f"/runs/{run_id}/steps/{key}/resolve", json=body)


async def say(service: Service, text: str) -> tuple[str, str]:
    """Start a run of the refund agent; ids of its thread and of the run."""
    async with service.sdk() as sdk:
        thread_id = (await sdk.threads.create())["thread_id"]
        run = await sdk.runs.create(thread_id, "refund", input={"messages": text})
    return thread_id, run["run_id"]


async def join(service: Service, thread_id: str, run_id: str) -> Any:
    """Wait for the end of a run; its values."""
    async with service.sdk() as sdk:
        return await sdk.runs.join(thread_id, run_id)


async def approve(service: Service, thread_id: str) -> str:
    """Approve what a thread asks for; the run that goes on."""
    async with service.http() as http:
        (wait,) = (await http.get(f"/threads/{thread_id}/waits", params={"status": "open"})).json()["items"]
        return str((await http.post(f"/waits/{wait['wait_id']}/answer", json={"answer": True})).json()["run_id"])


def effects(service: Service) -> list[dict[str, Any]]:
    """What reached the outside world."""
    path = service.data_dir / "effects.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def in_doubt(service: Service) -> tuple[str, str, dict[str, Any]]:
    """A refund whose server was killed in its middle, after the money had gone; thread, run, and the step."""
    thread_id, asking = await say(
        service, f'call refund {{"order_id": "A1", "amount_cents": 5, "delay_ms": {LONG_MS}}}'
    )
    await join(service, thread_id, asking)
    run_id = await approve(service, thread_id)
    await wait_until(lambda: effects(service), description="the refund to reach the outside world")
    assert (await step(service, run_id, "tool-1-0"))["status"] == "in_flight"
    service.restart()

    async def doubted() -> dict[str, Any]:
        found = await step(service, run_id, "tool-1-0")
        return found if found["status"] == "in_doubt" else {}

    return thread_id, run_id, await wait_until(doubted, description="the step to be in doubt")


async def test_every_step_is_listed_with_its_worker_and_its_cost(service: Service) -> None:
    """Model calls and tool calls in order, over the runs of one execution."""
    thread_id, asking = await say(
        service, 'call lookup_order {"order_id": "S1"}\ncall refund {"order_id": "S1", "amount_cents": 5}'
    )
    await join(service, thread_id, asking)
    waiting = await step(service, asking, "tool-2-0")
    run_id = await approve(service, thread_id)
    await join(service, thread_id, run_id)

    listed = await steps(service, run_id)

    assert [(each["key"], each["kind"], each["name"], each["effect"]) for each in listed["items"]] == [
        ("model-1", "model", "offline", "idempotent"),
        ("tool-1-0", "tool", "lookup_order", "pure"),
        ("model-2", "model", "offline", "idempotent"),
        ("tool-2-0", "tool", "refund", "once"),
        ("model-3", "model", "offline", "idempotent"),
    ]
    assert {(each["status"], each["outcome"], each["attempt_count"]) for each in listed["items"]} == {
        ("recorded", "ok", 1)
    }
    assert (waiting["status"], waiting["attempt_count"], waiting["worker_ids"]) == ("waiting", 0, [])
    assert [each["fence"] for each in listed["items"]] == [1, 1, 1, 2, 2]
    assert len({worker for each in listed["items"] for worker in each["worker_ids"]}) == 1
    assert all(each["started_at"] <= each["finished_at"] for each in listed["items"])
    paid = sum(each["tokens"]["total_tokens"] for each in listed["items"] if each["tokens"])
    assert listed["totals"]["tokens_paid"] == paid
    assert 0 < listed["totals"]["tokens_saved_by_replay"] < paid
    keys = {each["tool"]: each["idempotency_key"] for each in effects(service) if each["arguments"]["order_id"] == "S1"}
    assert keys == {each["name"]: each["idempotency_key"] for each in listed["items"] if each["kind"] == "tool"}
    assert (await steps(service, asking))["items"] == listed["items"]


async def test_a_call_that_was_not_made_has_no_attempt(service: Service) -> None:
    """With arguments that the tool refuses, or of an unknown tool: reported, and never begun."""
    calls = [{"id": "a", "name": "lookup_order", "args": {"order": 1}}, {"id": "b", "name": "nonsense", "args": {}}]
    async with service.sdk() as sdk:
        thread_id = (await sdk.threads.create())["thread_id"]
        await sdk.threads.update_state(thread_id, {"messages": [{"role": "ai", "content": "", "tool_calls": calls}]})
        run_id = (await sdk.runs.create(thread_id, "refund"))["run_id"]
    await join(service, thread_id, run_id)

    bad, unknown, reply = (await steps(service, run_id))["items"]

    assert [(each["status"], each["attempt_count"]) for each in (bad, unknown, reply)] == [
        ("failed", 0),
        ("failed", 0),
        ("recorded", 1),
    ]
    assert (bad["failure"]["error"], unknown["failure"]["error"]) == ("BadArguments", "UnknownTool")
    assert (bad["effect"], unknown["effect"]) == ("pure", None)


async def test_a_step_in_doubt_is_shown_everywhere(start_service: Callable[..., Service]) -> None:
    """As a step, as a wait, as an interrupt of the thread; its run stays pending, and the refund is not made again."""
    service = start_service()
    thread_id, run_id, doubted = await in_doubt(service)

    async with service.sdk() as sdk, service.http() as http:
        run, thread = await sdk.runs.get(thread_id, run_id), await sdk.threads.get(thread_id)
        (wait,) = (await http.get(f"/threads/{thread_id}/waits", params={"status": "open"})).json()["items"]
        answered = await http.post(f"/waits/{wait['wait_id']}/answer", json={"answer": True})

    assert (run["status"], thread["status"]) == ("pending", "interrupted")
    assert [each["id"] for found in thread["interrupts"].values() for each in found] == [wait["wait_id"]]
    assert (wait["kind"], wait["wait_id"]) == ("in_doubt", doubted["wait_id"])
    assert [attempt["outcome"] for attempt in doubted["attempts"]] == ["interrupted"]
    assert (answered.status_code, answered.json()["code"]) == (409, "conflict")
    assert [each["tool"] for each in effects(service)] == ["refund"]


async def test_a_resolution_that_names_its_doubt_settles_that_one_and_no_other(
    start_service: Callable[..., Service],
) -> None:
    """A later doubt about the same step is another question: what was said of the first does not settle it."""
    service = start_service()
    _, run_id, doubted = await in_doubt(service)
    other = str(uuid.uuid4())

    bad = await resolve(service, run_id, "tool-1-0", {"outcome": "verify", "wait_id": "ONE"})
    others = [
        await resolve(service, run_id, "tool-1-0", {**body, "wait_id": other})
        for body in ({"outcome": "verify"}, {"outcome": "happened", "result": 1}, {"outcome": "did_not_happen"})
    ]
    still = await step(service, run_id, "tool-1-0")
    named = await resolve(service, run_id, "tool-1-0", {"outcome": "verify", "wait_id": doubted["wait_id"]})

    assert (bad.status_code, bad.json()["code"]) == (422, "invalid_id")
    assert [(each.status_code, each.json()["code"]) for each in others] == [(409, "not_in_doubt")] * 3
    assert still["status"] == "in_doubt"
    assert (named.status_code, named.json()["outcome"], named.json()["is_settled"]) == (200, "happened", True)


@pytest.mark.parametrize(
    ("body", "outcome", "made"),
    [
        ({"outcome": "verify"}, "happened", 1),
        ({"outcome": "happened", "result": {"refunded": "abc\x00def", "at": [1, None, "\u2028"]}}, "happened", 1),
        ({"outcome": "did_not_happen"}, "did_not_happen", 2),
    ],
    ids=["verify", "happened", "did not happen"],
)
async def test_a_doubt_is_settled_once_and_the_run_goes_on(
    start_service: Callable[..., Service], body: dict[str, Any], outcome: str, made: int
) -> None:
    """By the verifier, by a result (NUL and all), or by another attempt with the same key; a repeat gets the same."""
    service = start_service()
    thread_id, run_id, doubted = await in_doubt(service)

    first = await resolve(service, run_id, "tool-1-0", body, **{"idempotency-key": "k1"})
    again = await resolve(service, run_id, "tool-1-0", body, **{"idempotency-key": "k1"})
    late = await resolve(service, run_id, "tool-1-0", {"outcome": "did_not_happen"})

    assert (first.status_code, first.json()["outcome"], first.json()["is_settled"]) == (200, outcome, True)
    assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
    assert (late.status_code, late.json()["code"]) == (409, "not_in_doubt")
    if made == 1:
        values = await join(service, thread_id, run_id)
        (result,) = [each["content"] for each in values["messages"] if each["type"] == "tool"]
        assert json.loads(result) == body.get("result", {"order_id": "A1", "amount_cents": 5, "refunded": True})
        settled = await step(service, run_id, "tool-1-0")
        assert (settled["status"], settled["attempt_count"]) == ("recorded", 1)
        assert settled["resolved_by"] == f"key:{service.key.split('_')[1]}"
    else:
        await wait_until(lambda: len(effects(service)) == made, description="the second attempt")
        assert [attempt["outcome"] for attempt in (await step(service, run_id, "tool-1-0"))["attempts"]] == [
            "interrupted",
            None,
        ]
    assert [(each["tool"], each["idempotency_key"]) for each in effects(service)] == [
        ("refund", doubted["idempotency_key"])
    ] * made


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "$"),
        ({"outcome": "maybe"}, "$.outcome"),
        ({"outcome": "happened"}, "$.result"),
        ({"outcome": "did_not_happen", "result": 1}, "$.result"),
        ({"outcome": "verify", "result": None}, "$.result"),
        ({"outcome": "happened", "result": 1, "by": "me"}, "$"),
    ],
)
async def test_a_resolution_says_what_became_of_it(service: Service, body: dict[str, Any], path: str) -> None:
    """One of three outcomes, with a result where there is one; 422 otherwise."""
    _, run_id = await say(service, "hello")

    refused = await resolve(service, run_id, "model-1", body)

    assert (refused.status_code, refused.json()["path"]) == (422, path)


@pytest.mark.parametrize("body", [{"outcome": "verify"}, {"outcome": "did_not_happen"}])
async def test_what_is_not_in_doubt_cannot_be_settled(service: Service, body: dict[str, Any]) -> None:
    """A step that is recorded, and one that does not exist."""
    thread_id, run_id = await say(service, 'call lookup_order {"order_id": "S2"}')
    await join(service, thread_id, run_id)

    for key in ("tool-1-0", "tool-9-9"):
        refused = await resolve(service, run_id, key, body)
        assert (refused.status_code, refused.json()["code"]) == (409, "not_in_doubt")


async def test_steps_are_walked_once_each_in_both_directions(service: Service) -> None:
    """Three to a page; a cursor belongs to its run."""
    text = "\n".join(f'parallel lookup_order {{"order_id": "P{number}"}}' for number in range(7))
    thread_id, run_id = await say(service, text)
    await join(service, thread_id, run_id)
    _, other = await say(service, "hello")

    pages = [await steps(service, run_id, limit=3)]
    while pages[-1]["next"]:
        pages.append(await steps(service, run_id, limit=3, cursor=pages[-1]["next"]))
    back = [pages[-1]]
    while back[-1]["previous"]:
        back.append(await steps(service, run_id, limit=3, cursor=back[-1]["previous"]))
    async with service.http() as http:
        foreign = await http.get(f"/runs/{other}/steps", params={"cursor": pages[0]["next"]})

    forward = [each["key"] for page in pages for each in page["items"]]
    assert forward == ["model-1", *(f"tool-1-{number}" for number in range(7)), "model-2"]
    assert [each["key"] for page in reversed(back) for each in page["items"]] == forward
    assert {page["totals"]["step_count"] for page in pages} == {9}
    assert (foreign.status_code, foreign.json()["code"]) == (400, "bad_cursor")
