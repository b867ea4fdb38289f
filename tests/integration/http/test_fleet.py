"""The fleet over HTTP: what a run says that nobody can run, the operators' pages, and the figures for Prometheus."""

from functools import partial
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import Connection, update

from tests.support.api import Api
from threadmark.app.access import Scope
from threadmark.app.access.key import DEFAULT_TENANT
from threadmark.state import expire, find_run, heartbeat, register, tables

AGENTS = '{"chat": "1"}'
LOOPS = '[{"name": "sweep", "age_s": 0.5, "error_count": 3, "is_stale": false}]'


async def a_run(api: Api, key: str) -> dict[str, Any]:
    """A run on a thread of its own, as the response shows it."""
    thread = (await api.call("POST", "/threads", key, json={})).json()
    body = {"assistant_id": "chat", "input": {"messages": [{"role": "user", "content": "hello"}]}}
    made: dict[str, Any] = (await api.call("POST", f"/threads/{thread['thread_id']}/runs", key, json=body)).json()
    return made


async def figures(api: Api, key: str) -> dict[tuple[str, str], float]:
    """The figures of the fleet: (name, first label) -> value."""
    text = (await api.call("GET", "/metrics", key)).text
    return {
        (sample.name, next(iter(sample.labels.values()), "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.startswith("threadmark_http")
    }


async def work(api: Api, worker_id: str = "worker-1") -> None:
    """A live worker of the agent `chat`, which reports its counts."""

    def unit(connection: Connection) -> None:
        register(connection, worker_id, 60.0, AGENTS)
        counts: dict[str, int | str] = {
            "claim_count": 90,
            "orphan_count": 2,
            "recent_claim_count": 30,
            "loop_lag_us": 1_500,
            "loops": LOOPS,
        }
        heartbeat(connection, worker_id, 60.0, counts)

    await api.resources.database.write(unit)


async def test_a_run_that_nobody_can_run_says_so_at_once(api: Api, operator: str) -> None:
    """In the response, in the run, in the list, to operators and in a metric; until there is a worker."""
    run = await a_run(api, operator)
    missing = {"reason": "no_worker", "route": "chat"}
    path = f"/threads/{run['thread_id']}/runs"

    assert run["waiting_for"] == missing
    assert (await api.call("GET", f"{path}/{run['run_id']}", operator)).json()["waiting_for"] == missing
    assert [each["waiting_for"] for each in (await api.call("GET", path, operator)).json()] == [missing]
    assert (await api.call("GET", "/admin/workers", operator)).json()["unserved"] == ["chat"]
    assert (await figures(api, operator))["threadmark_runs_unserved", "chat"] == 1

    await work(api)

    assert (await api.call("GET", f"{path}/{run['run_id']}", operator)).json()["waiting_for"] is None
    assert (await api.call("GET", "/admin/workers", operator)).json()["unserved"] == []
    assert ("threadmark_runs_unserved", "chat") not in await figures(api, operator)


async def test_a_batch_says_it_too(api: Api, operator: str) -> None:
    """Each run of it."""
    batch = [{"assistant_id": "chat", "input": {"messages": []}}] * 2

    made = (await api.call("POST", "/runs/batch", operator, json=batch)).json()

    assert [each["waiting_for"]["reason"] for each in made] == ["no_worker"] * 2


async def test_the_queues_tell_how_fast_and_how_late_claims_are(api: Api, operator: str) -> None:
    """Claims per second over the window that is named, by the live workers together."""
    await work(api, "worker-1")
    await work(api, "worker-2")
    await a_run(api, operator)

    queues = (await api.call("GET", "/admin/queues", operator)).json()

    assert (queues["claims_per_s"], queues["claims_window_s"]) == (1.0, 60)
    assert queues["lag_s"] > 0
    assert [(each["route"], each["status"], each["count"]) for each in queues["queues"]] == [("chat", "pending", 1)]


async def test_workers_tell_what_they_count(api: Api, operator: str) -> None:
    """In their list, and as metrics with one label: the process."""
    await work(api)

    (worker,) = (await api.call("GET", "/admin/workers", operator)).json()["workers"]
    counted = await figures(api, operator)

    assert (worker["claim_count"], worker["orphan_count"], worker["loop_lag_s"]) == (90, 2, 0.0015)
    (loop,) = worker["loops"]
    assert (loop["name"], loop["error_count"], loop["is_stale"]) == ("sweep", 3, False)
    assert 0.5 <= loop["completed_s_ago"] < 60
    assert counted["threadmark_worker_loop_errors_total", "sweep"] == 3
    assert counted["threadmark_worker_loop_age_seconds", "sweep"] >= 0.5
    assert counted["threadmark_claims_total", "worker-1"] == 90
    assert counted["threadmark_orphans_taken_total", "worker-1"] == 2
    assert counted["threadmark_worker_loop_lag_seconds", "worker-1"] == 0.0015
    assert (counted["threadmark_workers", ""], counted["threadmark_database_away", ""]) == (1, 0)


async def test_metrics_are_there_without_the_database(api: Api, operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are needed most then: the figures of the fleet are left out, and one says so."""
    await work(api)

    async def away(_query: object) -> object:
        raise OSError("connection refused")

    await api.call("GET", "/metrics", operator)
    monkeypatch.setattr(type(api.resources.database), "read", lambda _self, query: away(query))
    await api.resources.fleet_metrics.look(api.resources.database)
    monkeypatch.undo()

    names = {metric.name for metric in api.resources.fleet_metrics.collect()}
    assert names == {"threadmark_database_away"}


async def test_a_server_with_a_late_loop_is_not_ready(api: Api) -> None:
    """The reason names the loop; the database answers all the same."""
    supervisor = api.resources.wired.supervisor
    late = supervisor.watch("sweep", stale_s=-1.0)
    refused = await api.call("GET", "/ready")
    supervisor.forget(late)
    answered = await api.call("GET", "/ready")

    assert (refused.status_code, refused.json()["ready"]) == (503, False)
    assert refused.json()["reasons"] == ["sweep has completed no round yet"]
    assert (answered.status_code, answered.json()["reasons"]) == (200, [])


async def test_an_operator_re_drives_what_is_quarantined(api: Api, operator: str) -> None:
    """The run says why it stands still; re-driven it is pending like any other. What is not parked is refused."""
    run = await a_run(api, operator)

    def quarantine(connection: Connection) -> None:
        connection.execute(
            update(tables.run)
            .where(tables.run.c.run_id == run["run_id"])
            .values(parked="quarantined", error='{"error": "KeyError", "message": "a defect"}')
        )

    await api.resources.database.write(quarantine)
    path = f"/threads/{run['thread_id']}/runs/{run['run_id']}"
    shown = (await api.call("GET", path, operator)).json()
    assert (shown["status"], shown["parked"]) == ("pending", "quarantined")
    assert shown["error"] == {"error": "KeyError", "message": "a defect"}

    again = await api.call("POST", "/admin/redrive", operator, json={"run_id": run["run_id"]})
    refused = await api.call("POST", "/admin/redrive", operator, json={"run_id": run["run_id"]})

    assert (again.status_code, again.json()["parked"]) == (200, None)
    assert refused.status_code == 409
    assert "neither broken nor quarantined" in refused.json()["detail"]


async def test_tenants_do_not_re_drive(api: Api) -> None:
    """It is for operators, whose keys reach every tenant's runs."""
    key = await api.key(Scope.ADMIN)
    run = await a_run(api, key)

    assert (await api.call("POST", "/admin/redrive", key, json={"run_id": run["run_id"]})).status_code == 403


async def test_a_worker_that_left_takes_its_counts_along(api: Api, operator: str) -> None:
    """Counters are those of processes that live, as everywhere in Prometheus."""
    await work(api)
    await api.resources.database.write(lambda connection: expire(connection, ["worker-1"]))

    assert ("threadmark_claims_total", "worker-1") not in await figures(api, operator)


async def test_a_run_remembers_the_span_of_its_caller(api: Api, operator: str) -> None:
    """On a thread, without one, and in a batch; a header that names no span is left out."""
    header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    body = {"assistant_id": "chat", "input": {"messages": []}}
    thread = (await api.call("POST", "/threads", operator, json={})).json()["thread_id"]
    made = [
        (await api.call("POST", path, operator, json=asked, headers={"traceparent": sent})).json()
        for path, asked, sent in [
            (f"/threads/{thread}/runs", body, header),
            ("/runs", body, header),
            ("/runs/batch", [body], header),
            ("/runs", body, "nonsense"),
        ]
    ]
    ids = [(each[0] if isinstance(each, list) else each)["run_id"] for each in made]

    found = [
        await api.resources.database.read(partial(find_run, tenant_id=DEFAULT_TENANT, run_id=each)) for each in ids
    ]

    assert [run and run.request.trace_parent for run in found] == [header, header, header, None]
