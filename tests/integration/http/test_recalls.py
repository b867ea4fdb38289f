"""What a run knew, over HTTP, by a server that is killed in between."""

from collections.abc import Callable
from typing import Any

from tests.support.service import Service
from tests.support.waiting import wait_until
from threadmark.app.access import Scope

DOG = "The dog is called Rex."


async def say(service: Service, text: str, thread_id: str | None = None) -> tuple[str, str, list[Any]]:
    """Say something to the assistant that remembers: thread, run, and what was said in the end."""
    async with service.sdk() as sdk:
        thread_id = thread_id or (await sdk.threads.create())["thread_id"]
        values: Any = await sdk.runs.wait(thread_id, "memo", input={"messages": text})
        run = (await sdk.runs.list(thread_id))[0]
    return thread_id, run["run_id"], values["messages"]


async def recalls(service: Service, path: str, **query: Any) -> dict[str, Any]:
    """A page of recalls."""
    async with service.http() as http:
        response = await http.get(path, params=query)
    assert response.status_code == 200, response.text
    return dict(response.json())


async def test_a_fact_of_one_thread_is_known_in_another_and_the_journal_says_why(service: Service) -> None:
    """C46: said, remembered, recalled after a kill, with an instant in UTC and a source that opens."""
    source_thread, source_run, _ = await say(service, f"remember: {DOG}")
    service.restart()
    _, run_id, _ = await say(service, "What is the dog called?")

    page = await recalls(service, f"/runs/{run_id}/recalls")
    (recall,) = page["items"]
    assert (recall["asked_by"], recall["status"], recall["step_key"]) == ("policy", "ok", "recall-1")
    answer = next(each for each in recall["answers"] if each["text"] == DOG)
    assert answer["valid_from"].endswith("+00:00")
    source = answer["provenance"][0]
    assert (source["thread_ref"], source["run_ref"]) == (source_thread, source_run)
    async with service.http() as http:
        lines = (
            await http.get(f"/threads/{source_thread}/journal", params={"after": source["seq"] - 1, "limit": 1})
        ).json()
    (message,) = lines["items"][0]["payload"]["messages"]
    assert message["content"][source["char_from"] : source["char_to"]] == DOG


async def test_what_somebody_said_in_passing_is_known_later(service: Service) -> None:
    """No tool was called: a background task keeps the words after the run, and their source opens."""
    said = "My sister has moved to Porto with her three parrots."
    source_thread, source_run, _ = await say(service, said)

    async def is_known() -> list[Any]:
        _, run_id, _ = await say(service, "Where are the parrots of my sister?")
        (recall,) = (await recalls(service, f"/runs/{run_id}/recalls"))["items"]
        return [each for each in recall["answers"] if each["text"] == said]

    (answer,) = await wait_until(is_known, description="the words to be recalled")
    assert answer["kind"] == "turn"
    assert [(each["thread_ref"], each["run_ref"]) for each in answer["provenance"]] == [(source_thread, source_run)]


async def test_recalls_come_in_pages_and_by_thread(service: Service) -> None:
    """The recall of the run itself, then those of its model's tools."""
    thread_id, run_id, messages = await say(service, "recall: the dog\nrecall: the cat")

    first = await recalls(service, f"/threads/{thread_id}/runs/{run_id}/recalls", limit=2)
    rest = await recalls(service, f"/runs/{run_id}/recalls", limit=2, cursor=first["next"])

    assert [each["tool"] for each in (*first["items"], *rest["items"])] == [None, "recall", "recall"]
    assert [each["question"].get("question") for each in first["items"]] == [None, "the dog"]
    assert messages[-1]["content"].startswith("Done.")


async def test_a_run_of_another_thread_is_not_there(service: Service) -> None:
    """The path names the thread."""
    _, run_id, _ = await say(service, "hello")
    elsewhere, _, _ = await say(service, "hello")
    key = await service.new_key(Scope.READ)
    async with service.http(key) as http:
        assert (await http.get(f"/threads/{elsewhere}/runs/{run_id}/recalls")).status_code == 404
        assert (await http.get(f"/runs/{run_id}/recalls")).status_code == 200


async def test_recalls_are_steps_of_their_run(service: Service) -> None:
    """With their attempts, and where in the journal they are."""
    thread_id, run_id, _ = await say(service, "hello")
    async with service.http() as http:
        steps = (await http.get(f"/runs/{run_id}/steps")).json()["items"]
        lines = (await http.get(f"/threads/{thread_id}/journal")).json()["items"]

    assert [(each["key"], each["kind"], each["status"]) for each in steps] == [
        ("recall-1", "recall", "recorded"),
        ("model-1", "model", "recorded"),
    ]
    assert [each["attempt_count"] for each in steps] == [1, 1]
    assert next(each["seq"] for each in lines if each["kind"] == "recalled") == steps[0]["seq"]


async def test_an_erasure_over_http_reaches_every_journal_and_file(start_service: Callable[..., Service]) -> None:
    """S38, S39, F30: said, remembered, recalled, repeated; erased by thread it is nowhere, and every chain verifies."""
    service = start_service()
    secret = "the code of the safe is XYZZY-123"
    source_thread, _, _ = await say(service, f"remember: {secret}")
    asked_in, run_id, _ = await say(service, "recall: the code of the safe")

    async with service.http() as http:
        erased = await http.post("/memories/erase", json={"thread": source_thread})
        assert erased.status_code == 200, erased.text

        async def is_done() -> bool:
            job = await http.get(f"/memories/erasures/{erased.json()['erasure_id']}")
            return bool(job.json()["status"] == "done")

        await wait_until(is_done, description="the erasure to be done")
        chains = [
            (await http.get(f"/threads/{each}/journal/verify")).json()["holds"] for each in (source_thread, asked_in)
        ]
    recall, by_tool = (await recalls(service, f"/runs/{run_id}/recalls"))["items"]
    assert chains == [True, True]
    assert {each["text"] for each in (*recall["answers"], *by_tool["answers"])} == {"[erased]"}
    service.stop()
    found = [path.name for path in service.data_dir.rglob("*") if path.is_file() and b"XYZZY" in path.read_bytes()]
    assert (found, "XYZZY" in service.log) == ([], False)
