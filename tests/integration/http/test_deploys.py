"""A deploy while calls wait for a person: an approval is never spent on a call that its agent cannot make any more."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.service import Service
from tests.support.waiting import wait_until
from tests.support.waits import settled, waits

#: Each test starts its server several times.
pytestmark = pytest.mark.timeout(600)
CALL = 'call pay {"account": "ann", "cents": 5}'


def migrate(data_dir: Path, environment: dict[str, str]) -> None:
    """Make the databases; a server on PostgreSQL waits for that."""
    settings = {**os.environ, **environment, "THREADMARK_DATA_DIR": str(data_dir)}
    subprocess.run([sys.executable, "-m", "threadmark.app.cli", "migrate"], env=settings, check=True)


@pytest.fixture
def shop(start_service: Callable[..., Service]) -> Service:
    """A server with the first version of the agent."""
    return start_service(
        environment={"THREADMARK_AGENTS": "tests.support.deployed_agents:registry", "DEPLOYED": "first"}
    )


@pytest.fixture(params=["sqlite", "postgresql"])
def any_shop(request: pytest.FixtureRequest, start_service: Callable[..., Service]) -> Service:
    """The same over either database."""
    agents = {"THREADMARK_AGENTS": "tests.support.deployed_agents:registry", "DEPLOYED": "first"}
    if request.param == "postgresql":
        agents["THREADMARK_STATE_DATABASE_URL"] = request.getfixturevalue("postgres_url")
    return start_service(environment=agents, prepare=lambda data_dir: migrate(data_dir, agents))


async def park(shop: Service, text: str = CALL) -> tuple[str, dict[str, Any]]:
    """A thread that waits for a person, and its question."""
    async with shop.sdk() as sdk:
        thread_id = (await sdk.threads.create())["thread_id"]
        await sdk.runs.wait(thread_id, "clerk", input={"messages": text})
    (asked,) = await waits(shop, thread_id)
    return thread_id, asked


async def post(shop: Service, path: str, body: Any) -> Any:
    """The response to a request."""
    async with shop.http() as http:
        return await http.post(path, json=body)


async def results(shop: Service, thread_id: str) -> list[str]:
    """The results of the model's calls, once every run has ended."""
    runs = await settled(shop, thread_id)
    assert [run["status"] for run in runs] == ["success"] * len(runs)
    async with shop.sdk() as sdk:
        values: Any = (await sdk.threads.get_state(thread_id))["values"]
    return [each["content"] for each in values["messages"] if each["type"] == "tool"]


def paid(shop: Service) -> list[dict[str, Any]]:
    """What reached the outside world."""
    path = shop.data_dir / "paid.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def doctor(shop: Service) -> str:
    """What `threadmark doctor` says."""
    environment = {**os.environ, **shop.environment, "PORT": "0"}
    command = [sys.executable, "-m", "threadmark.app.cli", "doctor"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize(
    ("deployed", "kind", "why"),
    [
        ("renamed", "tool_gone", "has no tool 'pay' any more"),
        ("changed", "arguments_invalid", "`iban` is missing"),
        ("effect", "effect_changed", "was 'keyed' when it was asked and is 'once' now"),
    ],
)
async def test_an_approval_of_a_call_that_fits_no_more_is_refused_and_kept(
    any_shop: Service, deployed: str, kind: str, why: str
) -> None:
    """409 by either way of answering, shown to people and operators; under the old agent the same question pays."""
    shop = any_shop
    thread_id, asked = await park(shop)
    assert asked["outdated"] is None
    shop.redeploy(DEPLOYED=deployed)

    (shown,) = await waits(shop, thread_id)
    async with shop.http() as http:
        queues = (await http.get("/admin/queues")).json()["outdated_waits"]
    body = {"assistant_id": "clerk", "command": {"resume": {asked["wait_id"]: True}}}
    responses = [
        await post(shop, f"/waits/{asked['wait_id']}/answer", {"answer": True}),
        await post(shop, f"/threads/{thread_id}/runs", body),
    ]

    assert why in shown["outdated"]
    assert [(each["tool"], each["kind"], each["count"]) for each in queues] == [("pay", kind, 1)]
    assert [(each.status_code, each.json()["code"]) for each in responses] == [(409, "call_outdated")] * 2
    assert all(why in each.json()["detail"] for each in responses)
    assert f"1 parked call(s) of 'pay' do not fit the agent 'clerk' ({kind})" in doctor(shop)
    assert [(each["status"], each["answer"]) for each in await waits(shop, thread_id)] == [("open", None)]
    assert paid(shop) == []

    shop.redeploy(DEPLOYED="first")
    assert (await post(shop, f"/waits/{asked['wait_id']}/answer", {"answer": True})).status_code == 200
    assert await results(shop, thread_id) == ['{"paid":true}']
    assert paid(shop) == [{"account": "ann", "cents": 5}]
    assert "do not fit" not in doctor(shop)


async def test_a_call_that_fits_no_more_is_redirected_answered_or_closed(shop: Service) -> None:
    """By an alias it is made, by a result it is done, by a refusal it is over, and a new effect is approved by name."""
    parked = [await park(shop) for _ in range(4)]
    (given_id, given), (refused_id, refused), (named_id, named), (alias_id, alias) = parked
    shop.redeploy(DEPLOYED="renamed")
    for asked, answer in ((given, {"result": {"by": "hand"}}), (refused, {"approve": False, "reason": "too late"})):
        answered = await post(shop, f"/waits/{asked['wait_id']}/answer", {"answer": answer})
        assert answered.status_code == 200
    assert await results(shop, given_id) == ['{"by":"hand"}']
    assert await results(shop, refused_id) == ["A person refused this call: too late"]
    assert paid(shop) == []

    shop.redeploy(DEPLOYED="effect")
    answer = {"approve": True, "effect": "once"}
    assert (await post(shop, f"/waits/{named['wait_id']}/answer", {"answer": answer})).status_code == 200
    assert await results(shop, named_id) == ['{"paid":true}']

    shop.redeploy(DEPLOYED="aliased")
    assert [each["outdated"] for each in await waits(shop, alias_id)] == [None]
    assert (await post(shop, f"/waits/{alias['wait_id']}/answer", {"answer": True})).status_code == 200
    assert await results(shop, alias_id) == ['{"paid":true}']
    assert paid(shop) == [{"account": "ann", "cents": 5}] * 2


async def test_a_verifier_gets_the_arguments_as_they_were_sent(shop: Service) -> None:
    """Whatever a deploy made of the parameters; where the tool or the assistant is gone, the refusal says that."""
    async with shop.sdk() as sdk:
        thread_id = (await sdk.threads.create())["thread_id"]
        run = await sdk.runs.create(thread_id, "clerk", input={"messages": 'call wire {"account": "ann"}'})
    await wait_until(lambda: paid(shop), description="the money to go")
    shop.restart()

    async def doubts() -> list[dict[str, Any]]:
        return [each for each in await waits(shop, thread_id) if each["kind"] == "in_doubt"]

    await wait_until(doubts, description="the step to be in doubt")
    path, responses = f"/runs/{run['run_id']}/steps/tool-1-0/resolve", []
    for deployed in ("renamed", "none", "changed"):
        shop.redeploy(DEPLOYED=deployed)
        responses.append(await post(shop, path, {"outcome": "verify"}))

    assert [each.status_code for each in responses] == [422, 422, 200]
    assert "Tool 'wire' is gone" in responses[0].json()["detail"]
    assert "no assistant 'clerk'" in responses[1].json()["detail"]
    assert responses[2].json()["result"] == {"seen": {"account": "ann"}}
