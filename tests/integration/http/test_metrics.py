"""/metrics: what the process counts, for those who may know it."""

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.support.api import Api, open_api
from threadmark.app.access import Scope


async def counted(api: Api, key: str) -> dict[tuple[str, str, str], float]:
    """Requests by method, route and status."""
    response = await api.call("GET", "/metrics", key)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    return {
        (sample.labels["method"], sample.labels["route"], sample.labels["status"]): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
        if sample.name == "threadmark_http_requests_total"
    }


async def test_requests_are_counted_by_route_and_outcome(api: Api, admin: str) -> None:
    """By the route's template: ids and what clients invent are no labels, or the figures would grow for ever."""
    for number in range(5):
        await api.call("DELETE", f"/admin/keys/{number}", admin)
        await api.call(f"M{number}", f"/nowhere/{number}")

    assert await counted(api, admin) == {
        ("DELETE", "/admin/keys/{key_id}", "404"): 5,
        ("OTHER", "(none)", "404"): 5,
    }


async def test_what_is_open_is_known(api: Api, admin: str) -> None:
    """The request that asks is the one that is open, and none is left behind by the others."""
    await api.call("GET", "/ok")

    assert "threadmark_http_requests_open 1.0" in (await api.call("GET", "/metrics", admin)).text


async def test_metrics_are_for_admins(api: Api) -> None:
    """They tell of all tenants together."""
    key = await api.key(Scope.READ, Scope.RUN, Scope.APPROVE)

    assert (await api.call("GET", "/metrics", key)).status_code == 403
    assert (await api.call("GET", "/metrics")).status_code == 401


async def test_two_applications_count_apart(tmp_path: Path) -> None:
    """One process may hold two of them, as tests do."""
    async with open_api(tmp_path / "a") as one, open_api(tmp_path / "b") as other:
        await one.call("GET", "/ok")

        assert await counted(one, await one.key(Scope.ADMIN)) == {("GET", "/ok", "200"): 1}
        assert await counted(other, await other.key(Scope.ADMIN)) == {}


async def test_recalls_that_could_not_be_logged_are_counted(api: Api, admin: str) -> None:
    """The log of recalls drops what its queue cannot hold, and says so where an operator looks."""
    assert "threadmark_recalls_dropped_total 0.0" in (await api.call("GET", "/metrics", admin)).text
    log = api.resources.wired.recollection._recall_log
    log.dropped_count += 3

    assert "threadmark_recalls_dropped_total 3.0" in (await api.call("GET", "/metrics", admin)).text
