"""Waits over HTTP: one question for each call, one answer that counts, and the account of who gave it."""

import asyncio
import hashlib
import json
import sqlite3
from typing import Any

import httpx
import pytest

from tests.support.service import Service
from tests.support.waits import PARALLEL, ask, done, settled, waits
from threadmark.app.access import Scope

NOWHERE = "00000000-0000-4000-8000-000000000000"
TRACE_PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["first first", "second first"])
@pytest.mark.parametrize("way", ["answer", "resume by id"])
async def test_an_answer_goes_to_the_call_that_asked(service: Service, order: tuple[int, int], way: str) -> None:
    """Two calls of one reply ask two questions; no to the first and yes to the second, in either order."""
    tag = f"{way[0]}{order[0]}"
    text = PARALLEL.replace("A1", f"one-{tag}").replace("A2", f"two-{tag}")
    thread_id, asked = await ask(service, text)
    answers = [False, True]
    async with service.http() as http, service.sdk() as sdk:
        for index in order:
            if way == "answer":
                response = await http.post(f"/waits/{asked[index]['wait_id']}/answer", json={"answer": answers[index]})
                assert response.status_code == 200
            else:
                command: Any = {"resume": {asked[index]["wait_id"]: answers[index]}}
                await sdk.runs.create(thread_id, "refund", command=command)
            await settled(service, thread_id)
        state = await sdk.threads.get_state(thread_id)

    results = [each["content"] for each in state["values"]["messages"] if each["type"] == "tool"]  # type: ignore[call-overload]
    assert len({wait["wait_id"] for wait in asked}) == 2
    assert results[0] == "A person refused this call."
    assert json.loads(results[1])["refunded"] is True
    assert (done(service, f"one-{tag}"), done(service, f"two-{tag}")) == ([], ["refund"])


async def test_a_question_keeps_its_id_and_says_what_was_shown_and_who_answered_when(service: Service) -> None:
    """The digest is that of the arguments which are then used; the actor is the key that answered."""
    thread_id, (asked,) = await ask(service, 'call refund {"order_id": "seen", "amount_cents": 5}')
    approver = await service.new_key(Scope.APPROVE)

    async with service.http(approver) as http:
        answered = await http.post(f"/waits/{asked['wait_id']}/answer", json={"answer": {"approve": True}})
    await settled(service, thread_id)
    (wait,) = await waits(service, thread_id)

    shown = json.dumps({"arguments": asked["arguments"], "tool": "refund"}, sort_keys=True, separators=(",", ":"))
    assert asked["shown_digest"] == hashlib.sha256(shown.encode()).hexdigest()
    assert {**wait, **dict.fromkeys(("status", "answer", "answered_by", "answered_at"))} == {
        **asked,
        **dict.fromkeys(("status", "answer", "answered_by", "answered_at")),
    }
    assert (asked["status"], wait["status"], wait["answer"]) == ("open", "answered", {"approve": True})
    assert wait["answered_by"] == f"key:{approver.split('_')[1]}"
    assert wait["opened_at"] < wait["answered_at"]
    assert (answered.json()["wait_id"], answered.json()["thread_id"]) == (wait["wait_id"], thread_id)


async def test_questions_and_their_ids_survive_a_kill(start_service: Any) -> None:
    """They are rows and entries, not something a process remembers."""
    service = start_service()
    thread_id, asked = await ask(service, PARALLEL)

    service.restart()

    assert await waits(service, thread_id) == asked
    async with service.sdk() as sdk:
        interrupts = (await sdk.threads.get(thread_id))["interrupts"]
    assert [[each["id"] for each in found] for found in interrupts.values()] == [[wait["wait_id"] for wait in asked]]


async def at_once(service: Service, path: str, body: Any, count: int, key: str | None) -> list[httpx.Response]:
    """The answers to requests that wait for each other at a barrier; every second one carries the key."""
    barrier = asyncio.Barrier(count)

    async def post(number: int) -> httpx.Response:
        headers = {"idempotency-key": key} if key and number % 2 else {}
        async with service.http(headers_too=headers) as http:
            await http.get("/ok")
            await barrier.wait()
            return await http.post(path, json=body)

    return list(await asyncio.gather(*(post(number) for number in range(count))))


@pytest.mark.parametrize("way", ["answer", "resume"])
async def test_twenty_answers_at_once_are_one(service: Service, way: str) -> None:
    """Half of them share one key: one continues, requests with its key get the same response, all others 409."""
    order_id = f"rush-{way}"
    thread_id, (asked,) = await ask(service, f'call refund {{"order_id": "{order_id}", "amount_cents": 5}}')
    path, body = {
        "answer": (f"/waits/{asked['wait_id']}/answer", {"answer": True}),
        "resume": (f"/threads/{thread_id}/runs", {"assistant_id": "refund", "command": {"resume": True}}),
    }[way]

    responses = await at_once(service, path, body, 20, f"k-{way}")
    runs = await settled(service, thread_id)

    won = [each for each in responses if each.status_code == 200]
    with_key = [each for each in responses if "idempotency-key" in each.request.headers]
    lost = [each for each in responses if each.status_code != 200]
    assert len({each.json()["run_id"] for each in won}) == 1
    assert len([each for each in won if "idempotent-replayed" not in each.headers]) == 1
    assert {each.status_code for each in lost} <= {409}
    # Either the shared key won, and all its requests succeed, or one request without it did, alone.
    assert len(won) == (len(with_key) if "idempotency-key" in won[0].request.headers else 1)
    assert (len(runs), done(service, order_id)) == (2, ["refund"])


async def test_a_late_answer_is_refused_and_the_first_one_stands(service: Service) -> None:
    """Another answer changes nothing, and neither does the same one."""
    thread_id, (asked,) = await ask(service, 'call refund {"order_id": "late", "amount_cents": 5}')
    path = f"/waits/{asked['wait_id']}/answer"
    async with service.http() as http:
        assert (await http.post(path, json={"answer": False})).status_code == 200
        late = [await http.post(path, json={"answer": answer}) for answer in (True, False)]
    await settled(service, thread_id)

    assert [(each.status_code, each.json()["code"]) for each in late] == [(409, "already_answered")] * 2
    assert done(service, "late") == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"answer": None},
        {"answer": "yes"},
        {"answer": 1},
        {"answer": {"approve": True, "by": "me"}},
        {"approve": True},
    ],
)
async def test_an_answer_that_is_none_leaves_the_question_open(service: Service, body: Any) -> None:
    """422, and nothing was refused or paid."""
    thread_id, (asked,) = await ask(service, 'call refund {"order_id": "vague", "amount_cents": 5}')
    async with service.http() as http:
        response = await http.post(f"/waits/{asked['wait_id']}/answer", json=body)

    assert response.status_code == 422
    assert [wait["status"] for wait in await waits(service, thread_id)] == ["open"]


async def test_a_key_that_runs_agents_does_not_answer_for_people(service: Service) -> None:
    """The scope `approve` is another one: neither an answer nor a resume passes with `run` alone."""
    thread_id, (asked,) = await ask(service, 'call refund {"order_id": "self", "amount_cents": 5}')
    runner = await service.new_key(Scope.RUN, Scope.READ)

    async with service.http(runner) as http:
        answer = await http.post(f"/waits/{asked['wait_id']}/answer", json={"answer": True})
        resume = await http.post(
            f"/threads/{thread_id}/runs", json={"assistant_id": "refund", "command": {"resume": True}}
        )

    assert (answer.status_code, resume.status_code) == (403, 403)
    assert [wait["status"] for wait in await waits(service, thread_id)] == ["open"]


async def test_a_conversation_that_goes_on_takes_its_question_back(service: Service) -> None:
    """A later answer is refused; the call was not made, and the model received that result."""
    thread_id, (asked,) = await ask(service, 'call refund {"order_id": "moved", "amount_cents": 5}')
    async with service.sdk() as sdk, service.http() as http:
        await sdk.runs.wait(thread_id, "refund", input={"messages": "never mind"})
        response = await http.post(f"/waits/{asked['wait_id']}/answer", json={"answer": True})

    assert (response.status_code, response.json()["code"]) == (409, "already_answered")
    assert [wait["status"] for wait in await waits(service, thread_id)] == ["superseded"]
    assert done(service, "moved") == []


async def test_waits_are_walked_once_each_in_both_directions(service: Service) -> None:
    """Three to a page, some opened at one instant; a cursor belongs to its thread and its filter."""
    calls = "\n".join(f'parallel refund {{"order_id": "w{number}", "amount_cents": 5}}' for number in range(8))
    thread_id, asked = await ask(service, calls)
    path, ids = f"/threads/{thread_id}/waits", sorted(wait["wait_id"] for wait in asked)
    async with service.http() as http:

        async def page(**query: Any) -> Any:
            return (await http.get(path, params={"limit": 3, **query})).json()

        pages = [await page()]
        while pages[-1]["next"]:
            pages.append(await page(cursor=pages[-1]["next"]))
        back = [pages[-1]]
        while back[-1]["previous"]:
            back.append(await page(cursor=back[-1]["previous"]))
        filtered = await page(cursor=pages[0]["next"], status="open")
        none = await page(status="answered")

    forward = [wait["wait_id"] for each in pages for wait in each["items"]]
    assert sorted(forward) == ids
    assert [wait["wait_id"] for each in reversed(back) for wait in each["items"]] == forward
    assert filtered["code"] == "bad_cursor"
    assert none["items"] == []


async def test_the_run_that_an_answer_brings_about_remembers_the_span_of_its_caller(service: Service) -> None:
    """An answer is traced as the request for a run is."""
    thread_id, (asked,) = await ask(service, 'call refund {"order_id": "traced", "amount_cents": 5}')
    async with service.http() as http:
        path, headers = f"/waits/{asked['wait_id']}/answer", {"traceparent": TRACE_PARENT}
        answered = await http.post(path, json={"answer": True}, headers=headers)
    await settled(service, thread_id)

    with sqlite3.connect(service.data_dir / "state.db") as database:
        found = database.execute("SELECT request FROM run WHERE run_id = ?", (answered.json()["run_id"],)).fetchone()
    database.close()
    assert json.loads(found[0])["trace_parent"] == TRACE_PARENT


async def test_another_assistant_cannot_use_up_an_approval(service: Service) -> None:
    """409 names the assistant that asked; the question stays open, and its own assistant still pays."""
    thread_id, (asked,) = await ask(service, 'call refund {"order_id": "foreign", "amount_cents": 5}')
    async with service.http() as http:
        for resume in (True, {asked["wait_id"]: True}):
            body = {"assistant_id": "chat", "command": {"resume": resume}}
            refused = await http.post(f"/threads/{thread_id}/runs", json=body)
            assert (refused.status_code, refused.json()["code"]) == (409, "asked_by_another")
            assert "'refund'" in refused.json()["detail"]
    assert [wait["status"] for wait in await waits(service, thread_id)] == ["open"]

    async with service.sdk() as sdk:
        await sdk.runs.create(thread_id, "refund", command={"resume": True})
    await settled(service, thread_id)
    assert done(service, "foreign") == ["refund"]


async def test_a_resume_of_a_closed_or_foreign_question_lists_the_open_ones(service: Service) -> None:
    """409, and the list is what the caller can go on with."""
    thread_id, asked = await ask(service, PARALLEL.replace("A1", "list-1").replace("A2", "list-2"))
    closed, still_open = (each["wait_id"] for each in asked)
    async with service.http() as http:
        assert (await http.post(f"/waits/{closed}/answer", json={"answer": False})).status_code == 200
        await settled(service, thread_id)
        refusals = []
        for wait_id in (closed, NOWHERE):
            body = {"assistant_id": "refund", "command": {"resume": {wait_id: True}}}
            refusals.append(await http.post(f"/threads/{thread_id}/runs", json=body))

    assert [(each.status_code, each.json()["code"]) for each in refusals] == [
        (409, "already_answered"),
        (409, "nothing_to_resume"),
    ]
    assert all(f"Open questions: {still_open}." in each.json()["detail"] for each in refusals)
