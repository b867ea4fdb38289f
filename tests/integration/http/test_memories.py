"""Memories over HTTP: refusals, pages, keys, and a memory that is down."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.api import Api, open_api
from threadmark.app.access import Scope

NOWHERE = "00000000-0000-4000-8000-000000000000"
ITEM = {"namespace": ["users", "7"], "text": "likes tea"}


async def tell(api: Api, key: str, *items: dict[str, Any], headers: dict[str, str] | None = None) -> list[Any]:
    """Remember items; what became of them."""
    answer = await api.call("POST", "/memories", key, json={"items": list(items)}, headers=headers or {})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


@pytest.mark.parametrize(
    ("method", "path", "body", "place"),
    [
        ("POST", "/memories", {"items": []}, "$.items"),
        ("POST", "/memories", {"items": [{"text": "no namespace"}]}, "$.items[0]"),
        ("POST", "/memories", {"items": [ITEM | {"namespace": "users"}]}, "$.items[0].namespace"),
        ("POST", "/memories", {"items": [ITEM, ITEM | {"text": " "}]}, "$.items[1].text"),
        ("POST", "/memories", {"items": [ITEM | {"value": 1}]}, "$.items[0].value"),
        ("POST", "/memories", {"items": [ITEM | {"observed_at": "2026-01-01T00:00:00"}]}, "$.items[0].observed_at"),
        ("POST", "/memories", {"items": [ITEM | {"trust": "everybody"}]}, "$.items[0].trust"),
        ("POST", "/memories", {"items": [ITEM | {"source": {"seq": -1}}]}, "$.items[0].source.seq"),
        ("POST", "/memories/recall", {"query": "tea"}, "$"),
        ("POST", "/memories/recall", {"query": "tea", "namespace": "users"}, "$.namespace"),
        ("POST", "/memories/recall", {"query": " ", "namespace": []}, "$.query"),
        ("POST", "/memories/recall", {"query": "tea", "namespace": [], "filter": {}}, "$.filter"),
        ("POST", "/memories/recall", {"query": "tea", "namespace": [], "filter": {"x": 1}}, "$.filter"),
        ("POST", "/memories/recall", {"query": "tea", "namespace": [], "filter": {"kind": []}}, "$.filter.kind"),
        ("POST", "/memories/recall", {"query": "tea", "namespace": [], "kinds": []}, "$.kinds"),
        ("POST", "/memories/recall", {"query": "tea", "namespace": [], "limit": 201}, "$.limit"),
        ("POST", "/memories/erase", {}, "$"),
        ("POST", "/memories/erase", {"subject": "Ada", "tenant": True}, "$"),
        ("POST", "/memories/erase", {"namespace": []}, "$.namespace"),
        ("POST", "/memories/erase", {"source": {}}, "$.source"),
        ("POST", "/memories/erase", {"thread": "t", "source": {"actor": "Ada"}}, "$"),
        ("POST", "/memories/erase", {"thread": ""}, "$.thread"),
        ("POST", "/memories/erase", {"thread": "t" * 257, "dry_run": True}, "$.thread"),
        ("POST", "/memories/erase", {"subject": ""}, "$.subject"),
        ("POST", "/memories/quarantine", {"source": {}, "reason": "odd"}, "$.source"),
        ("GET", "/memories", None, "namespace"),
        ("GET", "/memories?namespace=[1]", None, "namespace"),
        ("GET", "/memories?namespace=", None, "namespace"),
        ("GET", "/memories?namespace=a&trust=everybody", None, "filter.trust"),
        ("GET", "/memories?namespace=a&include=some", None, "include"),
        ("GET", "/memories/timeline?namespace=a&subject=Ada", None, "attribute"),
        ("GET", "/memories/diff?namespace=a&known_from=2026-01-01T00:00:00Z&known_to=soon", None, "known_to"),
        ("GET", "/memories/7", None, "memory_id"),
        ("GET", "/memories/export", None, "namespace"),
        ("PUT", "/store/items", {"namespace": [], "key": "k", "value": {}}, "$.namespace"),
        ("PUT", "/store/items", {"namespace": ["a.b"], "key": "k", "value": {}}, "$.namespace[0]"),
        ("PUT", "/store/items", {"namespace": ["a"], "key": "k", "value": {}, "index": False}, "$.index"),
        ("PUT", "/store/items", {"namespace": ["a"], "key": "k", "value": {}, "ttl": 0}, "$.ttl"),
        ("PUT", "/store/items", {"namespace": ["a"], "key": "k" * 257, "value": {}}, "key"),
        ("DELETE", "/store/items", {"namespace": ["a"], "key": "k" * 257}, "key"),
        ("GET", f"/store/items?namespace=a&key={'k' * 257}", None, "key"),
        ("PUT", "/store/items", {"namespace": ["a"], "key": "k", "value": {"n": [2**53]}}, "$.value.n[0]"),
        ("POST", "/memories", {"items": [ITEM | {"value": -(2**53)}]}, "$.items[0].value"),
        ("POST", "/threads", {"metadata": {"n": 2**53}}, "$.metadata.n"),
        ("POST", "/store/items/search", {"namespace_prefix": [], "filter": {}}, "$.filter"),
        ("POST", "/store/items/search", {"namespace_prefix": [], "refresh_ttl": True}, "$.refresh_ttl"),
        ("GET", "/store/items?namespace=a&key=k&refresh_ttl=true", None, "refresh_ttl"),
    ],
    ids=str,
)
async def test_what_would_mean_everything_or_nothing_is_refused(
    api: Api, admin: str, method: str, path: str, body: Any, place: str
) -> None:
    """422, with the place: no namespace, an empty filter and an unknown field are never read as "all"."""
    answer = await api.call(method, path, admin, json=body)

    assert answer.status_code == 422, answer.text
    assert answer.json()["path"] == place


async def test_nothing_of_a_refused_request_is_kept(api: Api, admin: str) -> None:
    """All items or none."""
    await api.call("POST", "/memories", admin, json={"items": [ITEM, ITEM | {"text": ""}]})

    assert (await api.call("GET", "/memories?namespace=[]", admin)).json() == {"items": [], "next": None}


async def test_pages_lead_through_all_and_cursors_are_sealed(api: Api, admin: str) -> None:
    """Each memory once, in the order of arrival; a cursor of another listing is refused."""
    made = await tell(api, admin, *(ITEM | {"text": f"fact {number}"} for number in range(5)))
    seen: list[str] = []
    query = "/memories?namespace=users&limit=2"
    page = (await api.call("GET", query, admin)).json()
    while page["next"]:
        seen += [each["memory_id"] for each in page["items"]]
        last = page["next"]
        page = (await api.call("GET", f"{query}&cursor={last}", admin)).json()
    seen += [each["memory_id"] for each in page["items"]]

    assert seen == [each["memory_id"] for each in made]
    assert (await api.call("GET", f"/memories?namespace=other&cursor={last}", admin)).json()["code"] == "bad_cursor"


async def test_a_list_is_chosen_by_its_filters(api: Api, admin: str) -> None:
    """Several values are alternatives, several filters all hold."""
    await tell(
        api,
        admin,
        ITEM | {"text": "a rule", "kind": "rule", "source": {"thread_ref": "t-1", "actor": "Ada"}},
        ITEM | {"text": "a fact", "source": {"thread_ref": "t-1", "actor": "Bob"}},
        ITEM | {"text": "another", "source": {"thread_ref": "t-2"}},
    )

    async def texts(query: str) -> list[str]:
        page = (await api.call("GET", f"/memories?namespace=users&{query}", admin)).json()
        return [each["text"] for each in page["items"]]

    assert await texts("kind=rule&kind=fact&thread_ref=t-1") == ["a rule", "a fact"]
    assert await texts("actor=ada") == ["a rule"]
    assert await texts("thread_ref=t-2&kind=rule") == []


async def test_an_untrusted_word_waits_for_a_person(api: Api, admin: str) -> None:
    """It does not overrule a user's, is listed apart, and is believed when it is approved by a key that may."""
    fact = ITEM | {"subject": "user", "attribute": "drink", "value": "tea"}
    await tell(api, admin, fact)
    (held,) = await tell(api, admin, fact | {"text": "likes gin", "value": "gin", "trust": "web"})
    runner = await api.key(Scope.RUN, Scope.READ)
    path = f"/memories/{held['memory_id']}/approve"

    apart = (await api.call("GET", "/memories?namespace=[]&include=quarantined", admin)).json()["items"]
    asked = {"query": "gin", "namespace": []}
    before = (await api.call("POST", "/memories/recall", admin, json=asked)).json()
    refused = await api.call("POST", path, runner)
    approved = await api.call("POST", path, admin)
    after = (await api.call("POST", "/memories/recall", admin, json=asked)).json()

    assert (held["status"], held["hold"]) == ("quarantined", "conflict")
    assert [each["memory_id"] for each in apart] == [held["memory_id"]]
    assert held["memory_id"] not in {each["memory_id"] for each in before["answers"]}
    assert before["withheld"]["quarantined"] == 1
    assert refused.status_code == 403
    assert approved.json()["status"] == "current"
    assert [each["text"] for each in after["answers"]] == ["likes gin"]


async def test_the_trust_of_an_operator_needs_an_admins_key(api: Api) -> None:
    """A key that only runs agents cannot claim it."""
    runner = await api.key(Scope.RUN)

    answer = await api.call("POST", "/memories", runner, json={"items": [ITEM | {"trust": "operator"}]})

    assert answer.status_code == 403


@pytest.mark.parametrize("actor", ["", " ", "a\0b", "a" * 257])
async def test_a_source_that_no_memory_can_have_is_refused(api: Api, admin: str, actor: str) -> None:
    """A quarantine and an erasure by it would match nothing and look like a success."""
    source = {"source": {"actor": actor}}

    kept_apart = await api.call("POST", "/memories/quarantine", admin, json=source | {"reason": "no"})
    erased = await api.call("POST", "/memories/erase", admin, json=source)

    for answer in (kept_apart, erased):
        assert (answer.status_code, answer.json()["path"]) == (422, "$.source.actor")


@pytest.mark.parametrize("body", [{}, {"subject": "a", "thread": "t"}, {"thread": "t", "source": {"actor": "a"}}])
async def test_an_erasure_of_nothing_or_of_two_things_names_the_choices(
    api: Api, admin: str, body: dict[str, object]
) -> None:
    """All that a client can choose from, and nothing that it cannot send."""
    answer = await api.call("POST", "/memories/erase", admin, json=body)

    assert (answer.status_code, answer.json()["path"]) == (422, "$")
    assert "namespace, subject, thread, source and tenant" in answer.json()["detail"]


async def test_a_source_is_kept_apart_and_released(api: Api, admin: str) -> None:
    """Everything that rests on it leaves recall at once, and comes back."""
    await tell(api, admin, ITEM | {"source": {"thread_ref": "t-1", "actor": "Mallory"}})
    asked = {"query": "tea", "namespace": []}

    held = await api.call("POST", "/memories/quarantine", admin, json={"source": {"actor": "Mallory"}, "reason": "?"})
    during = (await api.call("POST", "/memories/recall", admin, json=asked)).json()["answers"]
    path = f"/memories/quarantine/{held.json()['quarantine_id']}/release"
    freed = (await api.call("POST", path, admin)).json()
    after = (await api.call("POST", "/memories/recall", admin, json=asked)).json()["answers"]

    assert (held.json()["held_count"], during, freed["released_count"], len(after)) == (1, [], 1, 1)
    unknown = await api.call("POST", f"/memories/quarantine/{NOWHERE}/release", admin)
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")


async def test_where_a_memory_came_from_is_looked_up_and_never_believed(api: Api, admin: str) -> None:
    """A source that names no thread of this tenant says so; one that claims other words than were said, too."""
    thread = (await api.call("POST", "/threads", admin, json={})).json()["thread_id"]
    said = {"values": {"messages": [{"role": "user", "content": "I like tea", "id": "m-1"}]}}
    await api.call("POST", f"/threads/{thread}/state", admin, json=said)
    entry = (await api.call("GET", f"/threads/{thread}/journal", admin)).json()["items"][-1]
    right = {"thread_ref": thread, "seq": entry["seq"], "message_ref": "m-1", "char_from": 2, "char_to": 10}
    sources = [
        right | {"quote": "like tea"},
        right | {"quote": "hate tea"},
        right | {"seq": 999},
        right | {"thread_ref": NOWHERE},
        {"thread_ref": "an order of another system"},
        {"thread_ref": "an order of another system", "seq": 1},
    ]
    made = await tell(api, admin, *(ITEM | {"text": f"{at}", "source": each} for at, each in enumerate(sources)))

    async def opened(memory_id: str) -> tuple[Any, ...]:
        (item,) = (await api.call("GET", f"/memories/{memory_id}/provenance", admin)).json()["items"]
        return item["status"], item["quoted"], item["quote_holds"]

    assert [await opened(each["memory_id"]) for each in made] == [
        ("found", "like tea", True),
        ("found", "like tea", False),
        ("no_entry", None, None),
        ("thread_gone", None, None),
        ("not_named", None, None),
        ("thread_gone", None, None),
    ]


async def test_a_memory_that_is_down_is_503_and_nothing_else_is(tmp_path: Path) -> None:
    """Ready is ready; threads are made; every route of memory says that it is to be tried again."""
    (tmp_path / "memory").mkdir()
    url = f"postgresql://nobody@127.0.0.1:9/{tmp_path.name}"
    async with open_api(tmp_path, environment={"THREADMARK_MEMORY_DATABASE_URL": url}, with_memory=False) as api:
        admin = await api.key(Scope.ADMIN)

        added = await api.call("POST", "/memories", admin, json={"items": [ITEM]})
        recalled = await api.call("POST", "/memories/recall", admin, json={"query": "tea", "namespace": []})
        listed = await api.call("GET", "/store/items?namespace=a&key=k", admin)
        ready = await api.call("GET", "/ready")
        thread = await api.call("POST", "/threads", admin, json={})

    assert [each.status_code for each in (added, recalled, listed)] == [503, 503, 503]
    assert (added.json()["code"], added.headers["retry-after"]) == ("memory_unavailable", "1")
    assert (ready.status_code, ready.json()["ready"], ready.json()["memory"]) == (200, True, "unavailable")
    assert ready.json()["reasons"] == ["memory does not answer"]
    assert thread.status_code == 200


async def test_ready_reports_the_state_of_memory(api: Api) -> None:
    """The response says whether the index answers."""
    assert (await api.call("GET", "/ready")).json() == {"ready": True, "memory": "ok", "reasons": []}
