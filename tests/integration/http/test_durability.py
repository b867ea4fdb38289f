"""GET /durability: what this deployment promises, in figures."""

from pathlib import Path

from tests.support.api import open_api
from threadmark.app.access import Scope

PACE = {"THREADMARK_LEASE_TTL_S": "4", "THREADMARK_HEARTBEAT_S": "1", "THREADMARK_SWEEP_S": "0.5"}


async def test_the_longest_time_until_somebody_notices_follows_from_the_settings(tmp_path: Path) -> None:
    """A dead worker by the next sweep; one that hangs when its lease has ended, and by the next sweep."""
    async with open_api(tmp_path, environment=PACE) as api:
        report = (await api.call("GET", "/durability", await api.key(Scope.READ))).json()

    deployment = report["deployment"]
    assert (deployment["mode"], deployment["database"]) == ("embedded", "sqlite")
    assert (deployment["lease_ttl_s"], deployment["heartbeat_s"], deployment["sweep_s"]) == (4, 1, 0.5)
    assert deployment["noticed_within"] == {"after_death_s": 0.5, "after_hang_s": 4.5, "after_stop_s": 0.0}


async def test_each_agent_says_what_a_crash_comes_to(tmp_path: Path) -> None:
    """By tool: what runs again, what runs again with its key, and what never does by itself."""
    async with open_api(tmp_path) as api:
        report = (await api.call("GET", "/durability", await api.key(Scope.READ))).json()

    (refund,) = [agent for agent in report["agents"] if agent["name"] == "refund"]
    assert {
        tool["name"]: (tool["effect"], tool["has_verifier"], tool["needs_approval"]) for tool in refund["tools"]
    } == {
        "lookup_order": ("pure", False, False),
        "check_policy": ("pure", False, False),
        "email_customer": ("keyed", False, False),
        "refund": ("once", True, True),
        "confirm": ("keyed", False, False),
    }
    assert [(mode["name"], mode["window_of_loss_s"]) for mode in refund["modes"]] == [("sync", 0.0)]
    assert refund["default_mode"] == "sync"
