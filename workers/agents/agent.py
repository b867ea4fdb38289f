"""Agents are data: a model, instructions, tools and limits, by name in a registry.

`THREADMARK_AGENTS` names a registry as `module:name`:

    registry = Registry([ChatAgent(name="chat", instructions="Be brief.", tools=[add])])
"""

import importlib
import re
import sys
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from threadmark.workers.agents.compaction_policy import CompactionPolicy
from threadmark.workers.agents.definition_errors import AgentRefused, RegistryRefused
from threadmark.workers.agents.memory_policy import MemoryPolicy
from threadmark.workers.agents.memory_tools import memory_tools
from threadmark.workers.agents.tools import Tool

__all__ = ["AgentRefused", "ChatAgent", "Limits", "Registry", "RegistryRefused", "assistant_id_of", "load_registry"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_ASSISTANTS = uuid.UUID("0f6f3a52-9d8b-5c43-8f0e-6a2d4f7b1c90")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a run may use; whichever is used up first ends it, with its name as the reason."""

    step_count_max: int = 100  #: steps of one run: model calls and tool calls together
    token_count_max: int = 1_000_000  #: tokens that the run's model calls report, in and out together
    wall_time_s_max: float = 3_600  #: seconds from the run's start
    model_attempt_max: int = 6  #: attempts of one model call, the first included
    reply_token_count_max: int | None = None  #: tokens of one reply; None: as many as the model gives

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} is {value!r}; a limit is above 0")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChatAgent:
    """An agent whose next action follows from its journal alone."""

    name: str
    model: str | None = None  #: None: the model that the server is set up with
    instructions: str = ""  #: the system text
    tools: Sequence[Tool] = ()  #: kept as a tuple
    limits: Limits = field(default_factory=Limits)
    version: str = "1"  #: a constant that the author raises; never derived from the source
    description: str = ""
    memory: MemoryPolicy | None = None  #: None: it knows nothing of other threads
    compaction: CompactionPolicy | None = None  #: None: its threads are compacted on demand only
    pin_version: bool = False  #: only workers that have this very version run what was accepted under it

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise AgentRefused(self.name, "needs a name of 1 to 64 letters, digits, '_', '-' and '.', no sign first")
        known = memory_tools(self.memory)
        # An agent that is made from another one has them already.
        object.__setattr__(self, "tools", (*(each for each in self.tools if each not in known), *known))
        names: set[str] = set()
        for each in self.tools:
            if not isinstance(each, Tool):
                raise AgentRefused(self.name, f"lists {each!r} as a tool: put @tool(effect=…) above that function")
            if each.name in names:
                raise AgentRefused(self.name, f"has two tools named {each.name!r}: rename one with @tool(name=…)")
            names.add(each.name)
        for each in self.tools:
            for alias in each.aliases:
                if alias in names:
                    raise AgentRefused(self.name, f"has two tools that answer to {alias!r}: drop the alias of one")
                names.add(alias)

    def tool(self, name: str) -> Tool | None:
        """The tool that has, or had, that name, if the agent has it."""
        return next((each for each in self.tools if name == each.name or name in each.aliases), None)

    @property
    def route(self) -> str:
        """Where runs accepted now go: to any worker with the agent, or with this version of it."""
        return f"{self.name}@{self.version}" if self.pin_version else self.name

    @property
    def routes(self) -> tuple[str, str]:
        """What a worker with this agent can run."""
        return self.name, f"{self.name}@{self.version}"

    @property
    def definitions(self) -> tuple[dict[str, Any], ...]:
        """The tools as chat completions describe them to a model."""
        return tuple(each.definition for each in self.tools)


class Registry:
    """The agents that a server offers, by name, in the order given."""

    def __init__(self, agents: Iterable[ChatAgent]) -> None:
        """Raises RegistryRefused for two agents of one name and for none at all."""
        self._agents: dict[str, ChatAgent] = {}
        for each in agents:
            if each.name in self._agents:
                raise RegistryRefused(f"two agents are named {each.name!r}: rename one of them")
            self._agents[each.name] = each
        if not self._agents:
            raise RegistryRefused("the registry has no agents: pass at least one ChatAgent to Registry([…])")
        self._names = {assistant_id_of(name): name for name in self._agents}

    def __iter__(self) -> Iterator[ChatAgent]:
        return iter(self._agents.values())

    def __len__(self) -> int:
        return len(self._agents)

    def find(self, assistant: str) -> ChatAgent | None:
        """The agent with this name or this assistant id."""
        if assistant in self._agents:
            return self._agents[assistant]
        return self._agents.get(self._names.get(assistant.lower(), ""))


def assistant_id_of(name: str) -> str:
    """The assistant id of an agent: the same on every server and after every restart."""
    return str(uuid.uuid5(_ASSISTANTS, name))


def load_registry(reference: str, search: Path | None = None) -> Registry:
    """Import the registry that `module:name` refers to, looking in the folder `search` too.

    Raises RegistryRefused with a sentence for each way in which that can fail.
    """
    module_name, colon, name = reference.partition(":")
    if not (module_name and colon and name) or ":" in name:
        raise RegistryRefused(
            f"{reference!r} names no registry: write module:name, as in threadmark.examples.registry:registry"
        )
    if search is not None and str(search) not in sys.path:
        sys.path.insert(0, str(search))
    module = _imported(module_name)
    if not hasattr(module, name):
        raise RegistryRefused(f"module {module_name!r} has no {name!r}: define it there, or correct {reference!r}")
    found = getattr(module, name)
    if isinstance(found, ChatAgent):
        raise RegistryRefused(f"{reference!r} is one agent: wrap it, registry = Registry([{name}]), and name that")
    if not isinstance(found, Registry):
        raise RegistryRefused(f"{reference!r} is a {type(found).__name__}: it must be a threadmark.Registry")
    return found


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise RegistryRefused(f"there is no module {name!r}: check the spelling and the folder") from error
        raise RegistryRefused(f"module {name!r} needs {error.name!r}, which is not installed") from error
    except Exception as error:
        # Any code may stand in that module; whatever it raises is the reason that the server cannot start.
        raise RegistryRefused(f"module {name!r} does not load: {type(error).__name__}: {error}") from error
