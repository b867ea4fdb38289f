"""Compactions over HTTP: ordered, dry, waited for, idempotent; their receipts, ledgers and verification."""

import json
from typing import Any

import pytest

from tests.support.api import Api
from tests.support.compacting import POLICY, compacted, long_thread, receipt
from threadmark.app.access import Scope
from threadmark.state.tasks.tasks import list_tasks


@pytest.fixture
async def thread(api: Api, admin: str) -> str:
    """A thread that is worth compacting."""
    return await long_thread(api, admin)


async def order(api: Api, key: str, thread_id: str, body: Any, **headers: str) -> Any:
    """The answer to an order."""
    return await api.call("POST", f"/threads/{thread_id}/compactions", key, json=body, headers=headers)


async def test_a_compaction_that_is_waited_for_has_its_receipt(api: Api, admin: str, thread: str) -> None:
    """What it covers, what it won, and an account in which every unit has one status."""
    made = await compacted(api, admin, thread)

    assert (made["status"], made["thread_id"], made["strategy"]) == ("committed", thread, "extractive")
    assert made["tokens_after"] < made["tokens_before"]
    assert 1 <= made["covers"]["from_seq"] < made["covers"]["to_seq"]
    assert made["shown_ratio"] == 1.0
    for counts in made["ledger"].values():
        assert counts["total"] == sum(n for name, n in counts.items() if name not in ("total", "introduced"))
    assert made["ledger"]["clause"]["total"] > 0
    shown = await receipt(api, admin, f"/compactions/{made['compaction_id']}")
    assert shown == made
    listed = await receipt(api, admin, f"/threads/{thread}/compactions")
    assert listed == {"items": [made], "next": None}


async def test_a_dry_run_writes_nothing(api: Api, admin: str, thread: str) -> None:
    """The same account, and no compaction, no view, no task."""
    dry = await order(api, admin, thread, {"policy": POLICY, "dry_run": True})

    assert dry.status_code == 200
    assert (dry.json()["compaction_id"], dry.json()["view_id"], dry.json()["dry_run"]) == (None, None, True)
    assert (await receipt(api, admin, f"/threads/{thread}/compactions"))["items"] == []
    assert await api.resources.database.read(lambda connection: list_tasks(connection, count_max=9)) == []
    made = await compacted(api, admin, thread)
    same = ("ledger", "covers", "tokens_before", "shown_ratio", "critical_dropped")
    assert {name: dry.json()[name] for name in same} == {name: made[name] for name in same}


async def test_an_order_in_the_background_is_a_task(api: Api, admin: str, thread: str) -> None:
    """202: the compaction waits, and its performer finds it by its id."""
    ordered = await order(api, admin, thread, {"policy": POLICY})

    assert (ordered.status_code, ordered.json()["status"]) == (202, "planned")
    (task,) = await api.resources.database.read(lambda connection: list_tasks(connection, count_max=9))
    assert (task.kind, task.key) == ("compact_thread", ordered.json()["compaction_id"])
    assert (await receipt(api, admin, f"/compactions/{task.key}"))["status"] == "planned"


async def test_one_key_is_one_compaction(api: Api, admin: str, thread: str) -> None:
    """The answer is replayed; the key does not stand for another order."""
    body = {"policy": POLICY, "wait": True}
    first = await order(api, admin, thread, body, **{"idempotency-key": "once"})
    again = await order(api, admin, thread, body, **{"idempotency-key": "once"})
    other = await order(api, admin, thread, {**body, "dry_run": True}, **{"idempotency-key": "once"})

    assert (first.status_code, again.status_code, again.content) == (200, 200, first.content)
    assert again.headers["idempotent-replayed"] == "true"
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert len((await receipt(api, admin, f"/threads/{thread}/compactions"))["items"]) == 1


async def test_where_nothing_can_be_won_it_says_so(api: Api, admin: str) -> None:
    """A refusal is an end like any other, with its reason, and the view is as it was."""
    short = await long_thread(api, admin, turn_count=1)

    dry = (await order(api, admin, short, {"policy": POLICY, "dry_run": True})).json()
    made = await compacted(api, admin, short)

    assert (made["status"], made["error_code"]) == ("refused", "nothing_to_cover")
    assert made["error"].startswith("nothing to do (nothing_to_cover): the request has ")
    assert (dry["status"], dry["error_code"], dry["error"]) == ("refused", made["error_code"], made["error"])
    assert (await receipt(api, admin, f"/threads/{short}/view"))["view_id"] == "whole"


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"policy": {"keep_last_turns": 0}}, "$.policy.keep_last_turns"),
        ({"policy": {"min_gain": 1.0}}, "$.policy.min_gain"),
        ({"policy": {"keep": 1}}, "$.policy"),
        ({"summariser": "magic"}, "$.summariser"),
        ({"wait": "yes"}, "$.wait"),
    ],
    ids=["turns", "gain", "unknown", "summariser", "wait"],
)
async def test_a_wish_that_cannot_be_honoured_is_refused(
    api: Api, admin: str, thread: str, body: dict[str, Any], path: str
) -> None:
    """With the place in the body, and nothing is ordered."""
    refused = await order(api, admin, thread, body)

    assert (refused.status_code, refused.json()["path"]) == (422, path)
    assert (await receipt(api, admin, f"/threads/{thread}/compactions"))["items"] == []


async def test_the_ledger_is_exported_row_by_row(api: Api, admin: str, thread: str) -> None:
    """NDJSON with every row, which adds up to what the receipt counts; the drops are some of its rows."""
    made = await compacted(api, admin, thread)
    path = f"/compactions/{made['compaction_id']}"

    answered = await api.call("GET", f"{path}/ledger", admin)
    rows = [json.loads(line) for line in answered.text.splitlines()]

    assert answered.headers["content-type"].startswith("application/x-ndjson")
    for unit, counts in made["ledger"].items():
        mine = [row["status"] for row in rows if row["unit"] == unit]
        assert {each: mine.count(each) for each in {*mine}} == {k: n for k, n in counts.items() if k != "total" and n}
    everything = await receipt(api, admin, f"{path}/drops", status="any", limit=200)
    assert everything == {"items": rows, "next": None}


async def test_ledgers_verify_by_the_journal_alone(api: Api, admin: str, thread: str) -> None:
    """One compaction, and the chain of all of a thread's."""
    made = await compacted(api, admin, thread)
    one = await receipt(api, admin, f"/compactions/{made['compaction_id']}/verify")
    chain = await receipt(api, admin, f"/threads/{thread}/compactions/verify")

    assert one["recounted"]
    assert (one["holds"], one["damage"], one["ledger_root"]) == (True, None, made["ledger_root"])
    assert chain == {"thread_id": thread, "holds": True, "items": [one]}


async def test_compactions_are_listed_page_by_page(api: Api, admin: str, thread: str) -> None:
    """Newest first."""
    ids = []
    for _ in range(3):
        ids.append((await order(api, admin, thread, {"policy": POLICY})).json()["compaction_id"])
        api.hands.pass_s(1)

    first = await receipt(api, admin, f"/threads/{thread}/compactions", limit=2)
    second = await receipt(api, admin, f"/threads/{thread}/compactions", limit=2, cursor=first["next"])

    assert [each["compaction_id"] for each in first["items"] + second["items"]] == ids[::-1]
    assert second["next"] is None


async def test_compacting_needs_more_than_reading(api: Api, thread: str) -> None:
    """A key with the read scope sees receipts and changes no view."""
    reader = await api.key(Scope.READ)

    assert (await order(api, reader, thread, {"wait": True})).status_code == 403
    assert (await receipt(api, reader, f"/threads/{thread}/compactions"))["items"] == []
