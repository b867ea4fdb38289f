"""Updates from outside while a question is open: what was asked about, and what is written, never come apart."""

from typing import Any

from tests.support.service import Service
from tests.support.waits import PARALLEL, ask, done, settled, waits


async def test_arguments_that_are_written_over_are_asked_about_anew(service: Service) -> None:
    """What is approved is what was shown: another amount is another question, and the old one is void."""
    thread_id, (asked,) = await ask(service, 'call refund {"order_id": "edited", "amount_cents": 5}')
    async with service.sdk() as sdk, service.http() as http:
        reply = (await sdk.threads.get_state(thread_id))["values"]["messages"][-1]  # type: ignore[call-overload]
        reply["tool_calls"][0]["args"]["amount_cents"] = 7
        await sdk.threads.update_state(thread_id, {"messages": [reply]}, as_node="model")
        old = await http.post(f"/waits/{asked['wait_id']}/answer", json={"answer": True})
        await sdk.runs.wait(thread_id, "refund")
        (again,) = [wait for wait in await waits(service, thread_id) if wait["status"] == "open"]
        await http.post(f"/waits/{again['wait_id']}/answer", json={"answer": True})
        await settled(service, thread_id)
        last = (await sdk.threads.get_state(thread_id))["values"]["messages"][-1]  # type: ignore[call-overload]

    assert old.status_code == 409
    assert again["arguments"]["amount_cents"] == 7
    assert again["wait_id"] != asked["wait_id"]
    assert again["shown_digest"] != asked["shown_digest"]
    assert '"amount_cents":7' in last["content"]


def result_of(wait: dict[str, Any], state: Any) -> dict[str, Any]:
    """A result, written by hand, for the call that a question is about."""
    calls = state["values"]["messages"][-1]["tool_calls"]
    (call,) = [call for call in calls if call["args"] == wait["arguments"]]
    return {"role": "tool", "content": "by hand", "tool_call_id": call["id"]}


async def test_a_result_from_outside_takes_its_question_back_and_no_other(service: Service) -> None:
    """The thread still asks the second one, which is answered as ever; the calls' results stand side by side."""
    thread_id, asked = await ask(service, PARALLEL.replace("A1", "hand-1").replace("A2", "hand-2"))
    async with service.sdk() as sdk, service.http() as http:
        by_hand = result_of(asked[0], await sdk.threads.get_state(thread_id))
        await sdk.threads.update_state(thread_id, {"messages": [by_hand]})
        thread = await sdk.threads.get(thread_id)
        await http.post(f"/waits/{asked[1]['wait_id']}/answer", json={"answer": True})
        await settled(service, thread_id)
        state = await sdk.threads.get_state(thread_id)

    assert [wait["status"] for wait in await waits(service, thread_id)] == ["superseded", "answered"]
    assert thread["status"] == "interrupted"
    assert [[each["id"] for each in found] for found in thread["interrupts"].values()] == [[asked[1]["wait_id"]]]
    kinds = [each["type"] for each in state["values"]["messages"]]  # type: ignore[call-overload]
    assert kinds == ["human", "ai", "tool", "tool", "ai"]
    assert (done(service, "hand-1"), done(service, "hand-2")) == ([], ["refund"])


async def test_results_that_would_leave_one_behind_are_refused(service: Service) -> None:
    """What a sibling returned joins the transcript with the last of them; a hand-written one must not cut it off."""
    text = 'parallel lookup_order {"order_id": "half"}\nparallel refund {"order_id": "half", "amount_cents": 5}'
    thread_id, (asked,) = await ask(service, text)
    path = f"/threads/{thread_id}/state"
    async with service.sdk() as sdk, service.http() as http:
        state: Any = await sdk.threads.get_state(thread_id)
        by_hand = result_of(asked, state)
        other = {**by_hand, "tool_call_id": state["values"]["messages"][-1]["tool_calls"][0]["id"]}
        refused = await http.post(path, json={"values": {"messages": [by_hand]}})
        taken = await http.post(path, json={"values": {"messages": [other, by_hand]}})
        after: Any = await sdk.threads.get_state(thread_id)

    assert (refused.status_code, refused.json()["path"]) == (422, "$.values.messages")
    assert taken.status_code == 200
    assert (after["next"], after["interrupts"]) == (["model"], [])
