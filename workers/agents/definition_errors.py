"""What is refused when tools, agents and registries are defined, before any run can meet it.

DefinitionRefused
├── ToolRefused
├── AgentRefused
└── RegistryRefused
"""

from threadmark.user_error import UserError

__all__ = ["AgentRefused", "DefinitionRefused", "RegistryRefused", "ToolRefused"]


class DefinitionRefused(UserError, ValueError):
    """A definition that cannot work; the sentence says how to put it right."""


class ToolRefused(DefinitionRefused):
    """A function that cannot be a tool as it stands."""

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(f"tool {name!r} {sentence}")


class AgentRefused(DefinitionRefused):
    """An agent that cannot run as it stands."""

    def __init__(self, name: object, sentence: str) -> None:
        super().__init__(f"agent {name!r} {sentence}")


class RegistryRefused(DefinitionRefused):
    """A registry that cannot be served."""
