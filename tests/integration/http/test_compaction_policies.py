"""/compaction-policies: kept by name, in versions that never change, and referred to by orders and jobs."""

from typing import Any

import pytest

from tests.support.api import Api
from tests.support.compacting import POLICY, compacted, long_thread, receipt
from threadmark.app.access import Scope

POLICIES = "/compaction-policies"


async def put(api: Api, key: str, name: str, policy: dict[str, Any] = POLICY) -> Any:
    """What a PUT is answered."""
    return await api.call("PUT", f"{POLICIES}/{name}", key, json=policy)


async def test_a_policy_has_a_version_for_each_of_its_values(api: Api, admin: str) -> None:
    """201 for new values, 200 for the same ones; earlier versions stay what they were."""
    first, same = await put(api, admin, "tight"), await put(api, admin, "tight")
    second = await put(api, admin, "tight", {**POLICY, "summary_tokens": 90})

    assert [(each.status_code, each.json()["version"]) for each in (first, same, second)] == [
        (201, 1),
        (200, 1),
        (201, 2),
    ]
    assert same.json() == first.json()
    assert await receipt(api, admin, f"{POLICIES}/tight") == second.json()
    assert await receipt(api, admin, f"{POLICIES}/tight", version=1) == first.json()
    assert first.json()["policy"] | POLICY == first.json()["policy"]
    absent = await api.call("GET", f"{POLICIES}/tight", admin, params={"version": 3})
    assert (absent.status_code, absent.json()["detail"]) == (
        404,
        "Compaction policy with ID tight, version 3, not found",
    )


async def test_an_order_by_name_is_one_by_its_values(api: Api, admin: str) -> None:
    """The receipt says which version it was, and stays so when the name stands for something else."""
    await put(api, admin, "tight")
    thread_id = await long_thread(api, admin)
    dry = await api.call("POST", f"/threads/{thread_id}/compactions", admin, json={"policy": "tight", "dry_run": True})
    made = await compacted(api, admin, thread_id, policy="tight")
    await put(api, admin, "tight", {**POLICY, "summary_tokens": 90})

    shown = await receipt(api, admin, f"/compactions/{made['compaction_id']}")
    assert (shown["policy"]["name"], shown["policy"]["version"], shown["policy"]["summary_tokens"]) == ("tight", 1, 60)
    assert shown["policy"] == dry.json()["policy"]
    assert (shown["covers"], shown["ledger"]) == (dry.json()["covers"], dry.json()["ledger"])


async def test_a_job_carries_the_values_that_its_policy_had(api: Api, admin: str) -> None:
    """A job that was ordered by name does not change under way, and is replayed when the name is gone."""
    await put(api, admin, "tight")
    job = {"policy": "tight", "prompt_tokens_max": 1_000}
    headers = {"idempotency-key": "once"}
    made = await api.call("POST", "/admin/compaction-jobs", admin, json=job, headers=headers)
    await api.call("DELETE", f"{POLICIES}/tight", admin)
    again = await api.call("POST", "/admin/compaction-jobs", admin, json=job, headers=headers)
    other = await api.call("POST", "/admin/compaction-jobs", admin, json=job)

    assert (made.status_code, again.content) == (202, made.content)
    assert (made.json()["policy"]["name"], made.json()["policy"]["prompt_tokens_max"]) == ("tight", 1_000)
    assert (other.status_code, "there is no compaction policy 'tight'" in other.text) == (422, True)
    assert len((await receipt(api, admin, "/admin/compaction-jobs"))["items"]) == 1


async def test_a_name_that_was_given_up_stands_for_nothing(api: Api, admin: str) -> None:
    """Its versions can be read, an order by it is refused, and put again it uses no number twice."""
    thread_id = await long_thread(api, admin, turn_count=1)
    first = await put(api, admin, "tight")
    gone = await api.call("DELETE", f"{POLICIES}/tight", admin)
    refused = await api.call("POST", f"/threads/{thread_id}/compactions", admin, json={"policy": "tight"})

    assert gone.status_code == 204
    assert (await api.call("DELETE", f"{POLICIES}/tight", admin)).status_code == 404
    assert (await api.call("GET", f"{POLICIES}/tight", admin)).status_code == 404
    assert (await receipt(api, admin, POLICIES))["items"] == []
    assert (refused.status_code, "$.policy: there is no compaction policy 'tight'" in refused.text) == (422, True)
    assert await receipt(api, admin, f"{POLICIES}/tight", version=1) == first.json()
    assert (await put(api, admin, "tight")).json()["version"] == 3


async def test_pages_of_policies_are_in_the_order_of_their_names(api: Api, admin: str) -> None:
    """Each once, in its newest version."""
    for name in ("c", "a", "b", "a"):
        await put(api, admin, name, {**POLICY, "summary_tokens": 70 if name == "a" else 60})
    first = await receipt(api, admin, POLICIES, limit=2)
    rest = await receipt(api, admin, POLICIES, limit=2, cursor=first["next"])

    assert [each["name"] for each in (*first["items"], *rest["items"])] == ["a", "b", "c"]
    assert rest["next"] is None


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        pytest.param("-tight", POLICY, id="name"),
        pytest.param("t" * 101, POLICY, id="long-name"),
        pytest.param("tight", {"keep_last_turns": 0}, id="value"),
        pytest.param("tight", {"nobody": 1}, id="member"),
        pytest.param("tight", {"name": "other"}, id="own-name"),
    ],
)
async def test_what_no_compaction_could_obey_is_not_kept(
    api: Api, admin: str, name: str, policy: dict[str, Any]
) -> None:
    """422, and nothing is there."""
    assert (await put(api, admin, name, policy)).status_code == 422
    assert (await receipt(api, admin, POLICIES))["items"] == []


async def test_a_foreign_policy_looks_like_one_that_never_was(api: Api, admin: str) -> None:
    """404 to read and to give up, not listed, not ordered by; a stranger's own of that name is another."""
    mine = await put(api, admin, "tight")
    stranger = await api.key(Scope.ADMIN, tenant_id="stranger")
    thread_id = await long_thread(api, stranger, turn_count=1)

    for method in ("GET", "DELETE"):
        foreign = await api.call(method, f"{POLICIES}/tight", stranger)
        missing = await api.call(method, f"{POLICIES}/never", stranger)
        assert (foreign.status_code, missing.status_code) == (404, 404)
        assert foreign.json()["code"] == missing.json()["code"]
    assert (await receipt(api, stranger, POLICIES))["items"] == []
    ordered = await api.call("POST", f"/threads/{thread_id}/compactions", stranger, json={"policy": "tight"})
    assert ordered.status_code == 422
    theirs = await put(api, stranger, "tight", {"keep_last_turns": 9})
    assert (theirs.status_code, theirs.json()["version"]) == (201, 1)
    assert await receipt(api, admin, f"{POLICIES}/tight") == mine.json()
