"""No route escapes: each needs a key with its scope, keeps tenants apart, and refuses what it does not know.

The routes come from the application itself, so a new one is under these rules from its first day.
"""

import ast
import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from litestar import get
from litestar.routes import HTTPRoute

from tests.architecture.sources import ROOT
from tests.support.api import Api, open_api
from threadmark.app.access import Scope, scope_needed
from threadmark.app.access.route_scopes import UndeclaredRoute, is_automatic
from threadmark.app.access.scopes import implied
from threadmark.app.listing.pages import PAGE_SIZE_MAX

#: The routes that need no key: what balancers ask. The list does not get longer.
PUBLIC = {"GET /ok", "GET /ready"}

HTTP = "tests/integration/http"
THREAD_TEST = f"{HTTP}/test_threads_tenants.py::test_a_foreign_id_looks_like_one_that_never_was"
RUN_TEST = f"{HTTP}/test_runs_tenants.py::test_a_foreign_run_looks_like_one_that_never_was"
COMPACTION_TEST = f"{HTTP}/test_compactions_tenants.py::test_a_foreign_compaction_looks_like_one_that_never_was"
JOB_TEST = f"{HTTP}/test_compaction_jobs.py::test_a_foreign_job_looks_like_one_that_never_was"
POLICY_TEST = f"{HTTP}/test_compaction_policies.py::test_a_foreign_policy_looks_like_one_that_never_was"
VERSIONS_TEST = f"{HTTP}/test_compaction_policy_changes.py::test_versions_are_listed_newest_first"
TASK_TEST = f"{HTTP}/test_tasks.py::test_tasks_are_for_operators_and_a_made_up_one_nobodys"
#: Agents belong to the server and not to a tenant: the test says so.
AGENT_TEST = f"{HTTP}/test_assistants.py::test_an_agent_is_every_tenants_and_a_made_up_one_nobodys"
MEMORY_TEST = f"{HTTP}/test_memories_tenants.py::test_a_foreign_memory_looks_like_one_that_never_was"
#: Every route with an id in its path, and the test that calls it with the key of another tenant and gets 404.
#: A new route with an id needs its line, and its test, here.
TENANT_TESTS = {
    "DELETE /admin/keys/{key_id}": f"{HTTP}/test_keys.py::test_a_foreign_key_looks_like_one_that_never_was",
    "GET /admin/compaction-jobs/{job_id}": JOB_TEST,
    "GET /admin/compaction-jobs/{job_id}/threads": JOB_TEST,
    "GET /admin/compaction-jobs/{job_id}/events": JOB_TEST,
    "POST /admin/compaction-jobs/{job_id}/pause": JOB_TEST,
    "POST /admin/compaction-jobs/{job_id}/resume": JOB_TEST,
    "POST /admin/compaction-jobs/{job_id}/cancel": JOB_TEST,
    "GET /admin/tasks/{task_id}": TASK_TEST,
    "POST /admin/tasks/{task_id}/retry": TASK_TEST,
    "POST /admin/tasks/{task_id}/cancel": TASK_TEST,
    "GET /assistants/{assistant_id}": AGENT_TEST,
    "GET /assistants/{assistant_id}/graph": AGENT_TEST,
    "GET /assistants/{assistant_id}/schemas": AGENT_TEST,
    "GET /assistants/{assistant_id}/subgraphs": AGENT_TEST,
    "GET /assistants/{assistant_id}/subgraphs/{namespace}": AGENT_TEST,
    "GET /threads/{thread_id}": THREAD_TEST,
    "PATCH /threads/{thread_id}": THREAD_TEST,
    "DELETE /threads/{thread_id}": THREAD_TEST,
    "POST /threads/{thread_id}/copy": THREAD_TEST,
    "GET /threads/{thread_id}/state": THREAD_TEST,
    "GET /threads/{thread_id}/state/{checkpoint_id}": THREAD_TEST,
    "POST /threads/{thread_id}/state/checkpoint": THREAD_TEST,
    "POST /threads/{thread_id}/state": THREAD_TEST,
    "POST /threads/{thread_id}/history": THREAD_TEST,
    "GET /threads/{thread_id}/history": THREAD_TEST,
    "GET /threads/{thread_id}/journal": THREAD_TEST,
    "GET /threads/{thread_id}/journal/verify": THREAD_TEST,
    "GET /threads/{thread_id}/waits": THREAD_TEST,
    "POST /waits/{wait_id}/answer": THREAD_TEST,
    "GET /memories/{memory_id}": MEMORY_TEST,
    "GET /memories/{memory_id}/history": MEMORY_TEST,
    "GET /memories/{memory_id}/provenance": MEMORY_TEST,
    "POST /memories/{memory_id}/retract": MEMORY_TEST,
    "POST /memories/{memory_id}/undo": MEMORY_TEST,
    "POST /memories/{memory_id}/approve": MEMORY_TEST,
    "GET /memories/erasures/{erasure_id}": MEMORY_TEST,
    "POST /memories/quarantine/{quarantine_id}/release": (
        f"{HTTP}/test_memories_tenants.py::test_a_foreign_quarantine_is_not_released"
    ),
    "POST /threads/{thread_id}/runs": RUN_TEST,
    "POST /threads/{thread_id}/runs/stream": RUN_TEST,
    "POST /threads/{thread_id}/runs/wait": RUN_TEST,
    "GET /threads/{thread_id}/runs": RUN_TEST,
    "GET /threads/{thread_id}/runs/{run_id}": RUN_TEST,
    "GET /threads/{thread_id}/runs/{run_id}/join": RUN_TEST,
    "GET /threads/{thread_id}/runs/{run_id}/stream": RUN_TEST,
    "POST /threads/{thread_id}/runs/{run_id}/cancel": RUN_TEST,
    "DELETE /threads/{thread_id}/runs/{run_id}": RUN_TEST,
    "POST /threads/{thread_id}/compactions": COMPACTION_TEST,
    "GET /threads/{thread_id}/compactions": COMPACTION_TEST,
    "GET /threads/{thread_id}/compactions/verify": COMPACTION_TEST,
    "GET /compactions/{compaction_id}": COMPACTION_TEST,
    "GET /compactions/{compaction_id}/ledger": COMPACTION_TEST,
    "GET /compactions/{compaction_id}/verify": COMPACTION_TEST,
    "GET /compactions/{compaction_id}/drops": COMPACTION_TEST,
    "POST /compactions/{compaction_id}/restore": COMPACTION_TEST,
    "GET /threads/{thread_id}/view": COMPACTION_TEST,
    "GET /threads/{thread_id}/views": COMPACTION_TEST,
    "GET /threads/{thread_id}/views/diff": COMPACTION_TEST,
    "POST /threads/{thread_id}/views/{view_id}/undo": COMPACTION_TEST,
    "POST /threads/{thread_id}/views/{view_id}/activate": COMPACTION_TEST,
    "GET /threads/{thread_id}/drops": COMPACTION_TEST,
    "POST /threads/{thread_id}/pins": COMPACTION_TEST,
    "GET /drops/{drop_id}/source": COMPACTION_TEST,
    "GET /compaction-policies/{name}": POLICY_TEST,
    "GET /threads/{thread_id}/drops/recalls": COMPACTION_TEST,
    "GET /threads/{thread_id}/pins/suggestions": COMPACTION_TEST,
    "POST /threads/{thread_id}/segments/{segment_id}/expand": COMPACTION_TEST,
    "GET /compaction-policies/{name}/versions": VERSIONS_TEST,
    "PUT /compaction-policies/{name}": POLICY_TEST,
    "DELETE /compaction-policies/{name}": POLICY_TEST,
    "GET /runs/{run_id}/steps": THREAD_TEST,
    "GET /runs/{run_id}/recalls": THREAD_TEST,
    "GET /threads/{thread_id}/runs/{run_id}/recalls": THREAD_TEST,
    "POST /runs/{run_id}/steps/{step_key}/resolve": THREAD_TEST,
}
#: Nothing that is waited for here takes longer; a route that streams or waits has refused the odd request long before.
ANSWER_S = 20.0


class Route(NamedTuple):
    """A route as clients see it, and what it declares."""

    method: str
    path: str
    scope: Scope | None
    body: Any

    @property
    def name(self) -> str:
        """As `PUBLIC` and `TENANT_TESTS` call it."""
        return f"{self.method} {self.path}"

    @property
    def odd_path(self) -> str:
        """The path with ids that nobody has."""
        parts = ["00000000-0000-4000-8000-000000000000" if "{" in part else part for part in self.path.split("/")]
        return "/".join(parts)


def routes_of(api: Api) -> list[Route]:
    """All of them, whatever is public, but for the OPTIONS that the framework adds."""
    return sorted(
        Route(method, route.path_format, scope_needed(handler), handler.parsed_data_field)
        for route in api.app.routes
        if isinstance(route, HTTPRoute)
        for handler in route.route_handlers
        if not is_automatic(handler)
        for method in handler.http_methods
    )


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    """The API, as it is served."""
    async with open_api(tmp_path) as api:
        yield api


async def status_of(api: Api, route: Route, key: str | None) -> int:
    """What a request without a body and with nobody's ids is answered."""
    async with asyncio.timeout(ANSWER_S):
        response = await api.call(route.method, route.odd_path, key)
    return int(response.status_code)


async def test_only_http_routes_are_served(api: Api) -> None:
    """A WebSocket or a mounted application would pass by the gate's rules."""
    assert [route.path for route in api.app.routes if not isinstance(route, HTTPRoute)] == []


async def test_no_route_is_open_but_the_listed(api: Api) -> None:
    """Without a key every other route answers 401, before it looks at anything else."""
    answered = {route.name: await status_of(api, route, None) for route in routes_of(api)}

    assert {name for name, status in answered.items() if status != 401} == PUBLIC
    assert {route.name for route in routes_of(api) if route.scope is None} == PUBLIC


@pytest.mark.parametrize("held", Scope)
async def test_a_scope_opens_what_it_implies_and_nothing_else(api: Api, held: Scope) -> None:
    """The whole square of scopes and routes: 403 where the scope is missing, neither 401 nor 403 where it is not."""
    key = await api.key(held)

    answered = {route: await status_of(api, route, key) for route in routes_of(api) if route.scope is not None}

    refused = {route.name for route, status in answered.items() if status in (401, 403)}
    assert refused == {route.name for route in answered if route.scope not in implied([held])}
    assert {403} >= {status for route, status in answered.items() if route.name in refused}
    assert [route.name for route, status in answered.items() if status >= 500] == []


async def test_every_route_with_an_id_has_its_tenant_test(api: Api) -> None:
    """A route with an id and without a line in TENANT_TESTS fails here, and so does a line without its route."""
    assert sorted(route.name for route in routes_of(api) if "{" in route.path) == sorted(TENANT_TESTS)


@pytest.mark.parametrize("test", TENANT_TESTS.values(), ids=TENANT_TESTS.keys())
def test_the_tenant_test_is_there(test: str) -> None:
    """A line in TENANT_TESTS names a test that exists."""
    file, _, name = test.partition("::")
    defined = {
        node.name
        for node in ast.walk(ast.parse((ROOT / file).read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }

    assert name in defined


async def test_a_route_without_a_scope_does_not_start(tmp_path: Path) -> None:
    """A forgotten declaration fails here when the route is added, not in production."""

    @get("/forgotten", sync_to_thread=False)
    def forgotten() -> None:
        """Declare nothing."""

    with pytest.raises(UndeclaredRoute, match="/forgotten"):
        async with open_api(tmp_path, routes=[forgotten]):
            pass


def structs(kind: msgspec.inspect.Type) -> Iterator[msgspec.inspect.StructType]:
    """Every struct that a value of this type may hold."""
    seen: list[type] = []
    pending: list[Any] = [kind]
    while pending:
        each = pending.pop()
        match each:
            case msgspec.inspect.StructType() if each.cls not in seen:
                seen.append(each.cls)
                yield each
                pending.extend(field.type for field in each.fields)
            case msgspec.inspect.UnionType():
                pending.extend(each.types)
            case msgspec.inspect.DictType():
                pending.extend([each.key_type, each.value_type])
            case msgspec.inspect.CollectionType():
                pending.append(each.item_type)
            case msgspec.inspect.TupleType():
                pending.extend(each.item_types)
            case msgspec.inspect.Metadata():
                pending.append(each.type)


async def test_no_body_is_taken_with_a_member_nobody_honours(api: Api) -> None:
    """Every object in every request body refuses unknown members; ignoring one would answer another request."""
    taken = [route for route in routes_of(api) if route.body is not None]
    open_ones = {
        f"{route.name}: {struct.cls.__name__}"
        for route in taken
        for struct in structs(msgspec.inspect.type_info(route.body.annotation))
        if not struct.forbid_unknown_fields
    }

    assert taken
    assert open_ones == set()


async def test_every_page_is_bounded(api: Api) -> None:
    """A query's `limit` has a maximum, 200 at most."""
    response = await api.call("GET", "/openapi.json", await api.key(Scope.READ))

    limits = {
        f"{method} {path}": parameter["schema"].get("maximum")
        for path, item in response.json()["paths"].items()
        for method, operation in item.items()
        for parameter in operation.get("parameters", [])
        if parameter["name"] == "limit"
    }

    assert limits
    assert {path: most for path, most in limits.items() if most is None or most > PAGE_SIZE_MAX} == {}
