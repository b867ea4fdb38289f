"""Memory through HTTP: remembered, corrected, recalled, traced to its origin, and erased."""

from typing import Any

import httpx

from tests.support.agent_server import Running

ADA = ["users", "ada"]


async def send(http: httpx.AsyncClient, path: str, body: Any = None, **options: Any) -> Any:
    """The answer to a POST that must succeed."""
    answer = await http.post(path, json=body, **options)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def look(http: httpx.AsyncClient, path: str, **query: Any) -> Any:
    """The answer to a GET that must succeed."""
    answer = await http.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def lives_in(city: str, since: str, **more: Any) -> dict[str, Any]:
    """That Ada lives somewhere since then."""
    return {
        "namespace": ADA,
        "text": f"Ada lives in {city}",
        "subject": "Ada",
        "attribute": "city",
        "value": city,
        "observed_at": since,
        **more,
    }


async def test_a_new_fact_takes_the_place_of_the_old_one_and_both_axes_of_time_are_kept(running: Running) -> None:
    """Oslo, then Bergen: now it is Bergen, in 2021 it was Oslo, and the history has both."""
    async with running.http() as http:
        (oslo,) = (await send(http, "/memories", {"items": [lives_in("Oslo", "2020-01-01T00:00:00Z")]}))["items"]
        (bergen,) = (await send(http, "/memories", {"items": [lives_in("Bergen", "2024-06-01T00:00:00Z")]}))["items"]
        assert (oslo["status"], bergen["status"]) == ("added", "superseded")
        assert bergen["superseded"] == [oslo["memory_id"]]

        question = {"query": "Where does Ada live?", "namespace": ["users"]}
        now = await send(http, "/memories/recall", question)
        then = await send(http, "/memories/recall", question | {"valid_at": "2021-05-05T00:00:00+02:00"})
        everything = await send(http, "/memories/recall", question | {"include": "all", "explain": True})

        assert [each["text"] for each in now["answers"]] == ["Ada lives in Bergen"]
        assert [each["text"] for each in then["answers"]] == ["Ada lives in Oslo"]
        assert {each["value"] for each in everything["answers"]} == {"Oslo", "Bergen"}
        assert everything["explanation"]["index_answered"] in (True, False)
        best = now["answers"][0]
        assert set(best["because"]) >= {"text"}
        assert best["valid_from"] == "2024-06-01T00:00:00Z"
        timeline = await look(http, "/memories/timeline", namespace=ADA, subject="Ada", attribute="city")
        assert [(each["value"], each["status"]) for each in timeline["items"]] == [
            ("Oslo", "superseded"),
            ("Oslo", "current"),
            ("Bergen", "current"),
        ]
        history = await look(http, f"/memories/{bergen['memory_id']}/history")
        other_name = await look(http, "/memories/timeline", namespace=ADA, subject="ada", attribute="city")
        assert (history, other_name["items"]) == (timeline, [])


async def test_a_memory_is_retracted_restored_and_compared_between_two_instants(running: Running) -> None:
    """A retraction ends the belief and not the history; its undo believes again."""
    async with running.http() as http:
        (made,) = (await send(http, "/memories", {"items": [lives_in("Oslo", "2020-01-01T00:00:00Z")]}))["items"]
        memory = await look(http, f"/memories/{made['memory_id']}")
        path = f"/memories/{made['memory_id']}"

        await send(http, f"{path}/retract", {"reason": "she never said so"})
        gone = await send(http, "/memories/recall", {"query": "Ada Oslo", "namespace": ADA, "include": "all"})
        again = await http.post(f"{path}/retract", json={"reason": "twice"})
        retracted = await look(http, path)

        assert gone["answers"] == []
        assert (again.status_code, again.json()["code"]) == (409, "already_retracted")
        assert (retracted["status"], retracted["reason"]) == ("retracted", "she never said so")
        restored = await send(http, f"{path}/undo")
        assert len(restored["restored"]) == 1
        back = await look(http, "/memories", namespace="[]")
        assert [each["text"] for each in back["items"]] == ["Ada lives in Oslo"]
        diff = await look(
            http,
            "/memories/diff",
            **{"namespace": ADA, "known_from": "2020-01-01T00:00:00Z", "known_to": memory["known_from"]},
        )
        assert [each["memory_id"] for each in diff["began"]] == [made["memory_id"]]
        assert diff["ceased"] == []


async def test_why_it_is_believed_is_answered_by_the_journal_entry_and_the_words(running: Running) -> None:
    """What was said to an agent in one thread is recalled by its words, with the entry, the run and the span."""
    thread_id = await running.thread()
    await running.sdk.runs.wait(thread_id, "memo", input={"messages": "remember: the dentist is on Friday at nine"})
    async with running.http() as http:
        asked = {"query": "When is the dentist?", "namespace": ["assistants", "memo"]}
        (answer,) = (await send(http, "/memories/recall", asked | {"limit": 1}))["answers"]

        opened = (await look(http, f"/memories/{answer['memory_id']}/provenance"))["items"]

        assert {each["status"] for each in opened} == {"found"}
        assert {each["entry"]["thread_id"] for each in opened} == {thread_id}
        assert {each["quote_holds"] for each in opened} <= {True, None}
        assert any("dentist is on Friday" in (each["quoted"] or "") for each in opened)
        assert all(each["entry"]["seq"] == each["source"]["seq"] for each in opened)

        await running.sdk.threads.delete(thread_id)
        after = (await look(http, f"/memories/{answer['memory_id']}/provenance"))["items"]
        assert {each["status"] for each in after} == {"thread_gone"}


async def test_what_is_erased_is_counted_first_and_gone_afterwards(running: Running) -> None:
    """A dry run says what would go; the erasure says what went, and nothing of it is found, nor imported again."""
    async with running.http() as http:
        await send(http, "/memories", {"items": [lives_in("Oslo", "2020-01-01T00:00:00Z")]})
        await send(http, "/memories", {"items": [{"namespace": ADA, "text": "Ada has a dog"}]})
        exported = await http.get("/memories/export", params={"namespace": "[]"})

        counted = await send(http, "/memories/erase", {"subject": "Ada", "dry_run": True})
        erased = await send(http, "/memories/erase", {"subject": "Ada"})

        assert (counted["status"], counted["counts"]) == ("dry_run", {"assertions": 1, "evidence": 1})
        assert (erased["status"], erased["counts"]["assertions"], erased["counts"]["entries"]) == ("done", 1, 1)
        assert await look(http, f"/memories/erasures/{erased['erasure_id']}") == erased
        left = await look(http, "/memories", namespace="[]", include="all")
        assert [each["text"] for each in left["items"]] == ["Ada has a dog"]
        imported = await http.post("/memories/import", params={"namespace": "[]"}, content=exported.content)
        assert imported.json()["erased"] > 0
        assert (await look(http, "/memories", namespace="[]", include="all")) == left


async def test_an_export_is_equal_after_it_was_imported_elsewhere(running: Running) -> None:
    """Byte for byte: times, sources, supersessions and ids are all in it."""
    async with running.http() as http:
        await send(http, "/memories", {"items": [lives_in("Oslo", "2020-01-01T00:00:00Z")]})
        source = {"thread_ref": "t-1", "message_ref": "m-1", "actor": "Ada", "at": "2024-06-01T00:00:00Z"}
        await send(http, "/memories", {"items": [lives_in("Bergen", "2024-06-01T00:00:00Z", source=source)]})
        exported = (await http.get("/memories/export", params={"namespace": "[]"})).content

        again = await http.post("/memories/import", params={"namespace": "[]"}, content=exported)
        foreign = await http.post("/memories/import", params={"namespace": ["users", "bob"]}, content=exported)

        assert again.json()["added"] == {}
        assert (foreign.status_code, "outside the scope" in foreign.json()["detail"]) == (422, True)
        assert (await http.get("/memories/export", params={"namespace": "[]"})).content == exported
