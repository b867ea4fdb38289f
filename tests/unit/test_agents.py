"""Agents and registries: what is refused when they are defined or loaded, and how they are found."""

import uuid
from pathlib import Path
from typing import Any

import pytest

from threadmark.workers.agents.agent import ChatAgent, Limits, Registry, assistant_id_of, load_registry
from threadmark.workers.agents.definition_errors import AgentRefused, RegistryRefused
from threadmark.workers.agents.tools import Effect, tool


@tool(effect=Effect.PURE)
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def not_a_tool(a: int) -> int:
    return a


def test_an_agent_knows_its_tools_by_name() -> None:
    """Tools are kept in order, described to the model, and found by name."""
    agent = ChatAgent(name="chat", tools=[add])

    assert agent.tools == (add,)
    assert agent.tool("add") is add
    assert agent.tool("subtract") is None
    assert [each["function"]["name"] for each in agent.definitions] == ["add"]
    assert (agent.version, agent.model, agent.limits) == ("1", None, Limits())


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"name": ""}, "needs a name"),
        ({"name": "a/b"}, "needs a name"),
        ({"name": "chat", "tools": [not_a_tool]}, r"put @tool\(effect=…\) above that function"),
        ({"name": "chat", "tools": [add, add]}, "two tools named 'add': rename one"),
    ],
)
def test_an_agent_that_cannot_run_is_refused(settings: dict[str, Any], sentence: str) -> None:
    """The refusal comes where the agent is defined."""
    with pytest.raises(AgentRefused, match=sentence):
        ChatAgent(**settings)


@pytest.mark.parametrize("wrong", [{"step_count_max": 0}, {"wall_time_s_max": -1}, {"reply_token_count_max": 0}])
def test_a_limit_is_above_nothing(wrong: dict[str, Any]) -> None:
    """A run that may do nothing is a mistake in the settings."""
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} is .*a limit is above 0"):
        Limits(**wrong)


def test_agents_are_found_by_name_and_by_assistant_id() -> None:
    """The assistant id follows from the name alone, so every server gives the same."""
    chat, refund = ChatAgent(name="chat"), ChatAgent(name="refund")
    registry = Registry([chat, refund])

    assert list(registry) == [chat, refund]
    assert len(registry) == 2
    assert registry.find("chat") is chat
    assert registry.find(assistant_id_of("refund").upper()) is refund
    assert registry.find("nope") is None
    assert registry.find(str(uuid.uuid4())) is None
    assert assistant_id_of("chat") == "22015376-97af-5bc8-a334-41868922e89f"


def test_a_registry_has_agents_of_different_names() -> None:
    """Two agents of one name, and none at all, are refused."""
    with pytest.raises(RegistryRefused, match="two agents are named 'chat': rename one"):
        Registry([ChatAgent(name="chat"), ChatAgent(name="chat")])
    with pytest.raises(RegistryRefused, match="no agents"):
        Registry([])


MODULE = """
from threadmark.workers.agents.agent import ChatAgent, Registry
agent = ChatAgent(name="mine")
registry = Registry([agent])
number = 5
"""


def test_a_registry_is_loaded_by_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`module:name` is looked up on the path and in the folder that is searched beside it."""
    monkeypatch.setattr("sys.path", ["/nowhere"])
    (tmp_path / "registry_of_mine.py").write_text(MODULE)

    registry = load_registry("registry_of_mine:registry", tmp_path)

    assert [each.name for each in registry] == ["mine"]


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("registry_of_faults", "write module:name"),
        (":registry", "write module:name"),
        ("registry_of_faults:", "write module:name"),
        ("a:b:c", "write module:name"),
        ("registry_of_nothing:registry", "there is no module 'registry_of_nothing': check the spelling"),
        ("registry_of_faults:nothing", "has no 'nothing': define it there"),
        ("registry_of_faults:agent", r"is one agent: wrap it, registry = Registry\(\[agent\]\)"),
        ("registry_of_faults:number", "is a int: it must be a threadmark.Registry"),
        ("registry_that_imports:registry", "needs 'not_installed_at_all', which is not installed"),
        ("registry_that_raises:registry", "does not load: ZeroDivisionError: division by zero"),
        ("registry_with_a_bad_tool:registry", "does not load: ToolRefused: tool 'f' declares no effect"),
    ],
)
def test_each_failure_to_load_has_its_sentence(
    reference: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what to change in THREADMARK_AGENTS."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "registry_of_faults.py").write_text(MODULE)
    (tmp_path / "registry_that_imports.py").write_text("import not_installed_at_all\n")
    (tmp_path / "registry_that_raises.py").write_text("1 / 0\n")
    (tmp_path / "registry_with_a_bad_tool.py").write_text(
        "from threadmark.workers.agents.tools import tool\n@tool()\nasync def f() -> None: ...\n"
    )

    with pytest.raises(RegistryRefused, match=sentence):
        load_registry(reference)
