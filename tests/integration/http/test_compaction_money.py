"""Caps in money, asked for over HTTP."""

from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path

import pytest

from tests.support.api import Api, open_api
from tests.support.compacting import POLICY, compacted, long_thread
from threadmark.app.access import Scope
from threadmark.workers.agents.agent import RegistryRefused
from threadmark.workers.settings.settings import Settings
from threadmark.workers.wiring import open_resources

PRICES = '{"offline": {"input": "2.50", "output": "10"}}'
CAPPED = """
from threadmark.compaction import Policy, SummariserKind
from threadmark.workers.agents.agent import ChatAgent, Registry
from threadmark.workers.agents.compaction_policy import CompactionPolicy

policy = CompactionPolicy(summariser=SummariserKind.MODEL, policy=Policy(cost_max="0.5"))
registry = Registry([ChatAgent(name="capped", compaction=policy)])
"""


@pytest.fixture
async def priced(tmp_path: Path) -> AsyncIterator[Api]:
    """The API with a model that has a price."""
    async with open_api(tmp_path, environment={"THREADMARK_MODEL_PRICES": PRICES}) as api:
        yield api


async def test_a_receipt_says_what_was_paid(priced: Api) -> None:
    """An exact decimal; nothing where no model took part; and no call where the cap is too low for all of them."""
    key = await priced.key(Scope.ADMIN)
    paid = await compacted(
        priced, key, await long_thread(priced, key), summariser="model", policy={**POLICY, "cost_max": "0.50"}
    )
    free = await compacted(priced, key, await long_thread(priced, key))
    capped = await compacted(
        priced, key, await long_thread(priced, key), summariser="model", policy={**POLICY, "cost_max": "0.001"}
    )

    dry = await priced.call(
        "POST",
        f"/threads/{await long_thread(priced, key)}/compactions",
        key,
        json={"summariser": "model", "policy": POLICY, "dry_run": True},
    )

    assert Decimal(dry.json()["cost"]) > 0
    expected = (Decimal("2.50") * paid["prompt_tokens"] + 10 * paid["output_tokens"]) / 10**6
    assert paid["strategy"] == "model"
    assert Decimal(0) < Decimal(paid["cost"]) == expected <= Decimal("0.50")
    assert paid["policy"]["cost_max"] == "0.5"
    assert (free["cost"], capped["cost"], capped["strategy"]) == (None, None, "extractive")
    assert [each["reason"] for each in capped["rejections"]] == ["the prompts would cost more than the policy allows"]


async def test_a_cap_without_a_price_is_refused_before_its_key_is_taken(api: Api, admin: str) -> None:
    """By value and by name; the same key may come again with a better policy."""
    thread_id = await long_thread(api, admin, 2)
    await api.call("PUT", "/compaction-policies/capped", admin, json={**POLICY, "cost_max": "1"})
    path, headers = f"/threads/{thread_id}/compactions", {"idempotency-key": "again"}
    body = {"policy": {**POLICY, "cost_max": "1"}, "summariser": "model"}
    refused = await api.call("POST", path, admin, json=body, headers=headers)
    better = {"policy": POLICY, "summariser": "model"}
    taken = await api.call("POST", path, admin, json=better, headers=headers)
    named = await api.call("POST", path, admin, json={"policy": "capped", "summariser": "model"})

    assert (refused.status_code, taken.status_code, named.status_code) == (422, 202, 422)
    for each in (refused, named):
        assert "has no price of" in each.json()["detail"]


async def test_an_agent_with_a_cap_and_no_price_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a sentence that names agent and variable; with a price it starts."""
    (tmp_path / "capped_agents.py").write_text(CAPPED)
    monkeypatch.syspath_prepend(tmp_path)
    environment = {"THREADMARK_AGENTS": "capped_agents:registry"}
    async with open_api(tmp_path, environment={**environment, "THREADMARK_MODEL_PRICES": PRICES}):
        pass
    settings = Settings.from_environment({"THREADMARK_DATA_DIR": str(tmp_path), **environment})
    with pytest.raises(RegistryRefused, match=r"'capped'.*THREADMARK_MODEL_PRICES.*'offline'"):
        async with open_resources(settings, with_worker=False):
            pass
